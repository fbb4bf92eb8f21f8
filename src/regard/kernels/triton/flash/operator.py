"""FlashAttention as a custom operator with autograd, opaque to torch.compile."""

from typing import Any

import torch
from torch import Tensor

from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.arguments import ForwardOutput, Plan, StatisticsRequest

Eight = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]

TENSORS = Plan._fields.index("offset")
"""The number of leading fields of a plan that are tensors or None."""
FIRST_ORDER = Plan._fields.index("order")
"""The index of the tensor fields after its numbers: the order of the queries."""


def attend(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, requested: StatisticsRequest) -> ForwardOutput:
    """Run FlashAttention; only the context is differentiable."""
    if not torch.compiler.is_compiling():
        return attend_eager(query, keys, values, plan, requested)
    outputs = ForwardOutput(*forward_operator(query, keys, values, *plan, list(map(int, requested))))
    return ForwardOutput(outputs.context, *(output.detach() for output in outputs[1:]))


def run_forward(
    query: Tensor, keys: Tensor, values: Tensor,
    bias: Tensor | None, centres: Tensor | None, keep: Tensor | None, mask: Tensor | None,
    offsets: Tensor | None, seed: Tensor | None,
    offset: int, window: int, causal: bool, gaussian: int, width: float, scale: float, dropout: float,
    tiles: list[int], bin_width: int, order: Tensor | None, ends: Tensor | None, sorted_centres: Tensor | None,
    requested: list[int],
) -> Eight:  # fmt: skip
    """Forward operator: the fields of `ForwardOutput`, from those of `Plan` and `StatisticsRequest`."""
    plan = Plan(
        bias, centres, keep, mask, offsets, seed, offset, window, causal, gaussian, width, scale, dropout, tiles, bin_width,
        order, ends, sorted_centres,
    )  # fmt: skip
    return tuple(launch.forward(query, keys, values, plan, _parse_request(requested)))  # type: ignore[return-value]


forward_operator = torch.library.custom_op("regard::one_pass", run_forward, mutates_args=())


@forward_operator.register_fake
def _(query: Tensor, keys: Tensor, values: Tensor, *rest: Any) -> Eight:
    return tuple(launch.allocate_output(query, keys, values, _parse_request(rest[-1])))  # type: ignore[return-value]


def run_backward(
    gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, context: Tensor, lse: Tensor,
    bias: Tensor | None, centres: Tensor | None, keep: Tensor | None, mask: Tensor | None,
    offsets: Tensor | None, seed: Tensor | None,
    offset: int, window: int, causal: bool, gaussian: int, width: float, scale: float, dropout: float,
    tiles: list[int], bin_width: int, order: Tensor | None, ends: Tensor | None, sorted_centres: Tensor | None,
    wants_bias: bool, wants_centres: bool,
) -> Five:  # fmt: skip
    """Backward operator: the fields of `Gradients`, with those of bias and centres in their shapes."""
    plan = Plan(
        bias, centres, keep, mask, offsets, seed, offset, window, causal, gaussian, width, scale, dropout, tiles, bin_width,
        order, ends, sorted_centres,
    )  # fmt: skip
    gradients = launch.backward(gradient, query, keys, values, context, lse, plan, wants_bias, wants_centres)
    d_bias = lse.new_empty(0) if bias is None or not wants_bias else gradients.bias.sum_to_size(bias.shape)
    d_centres = lse.new_empty(0) if centres is None or not wants_centres else _sum_heads(gradients.centres).to(centres.dtype)
    return (
        gradients.query,
        gradients.keys,
        gradients.values,
        d_bias,
        d_centres,
    )  # separately: an operator may not return a tensor twice


def _sum_heads(d_centres: Tensor) -> Tensor:
    """The gradient of the centres summed over heads."""
    return d_centres.squeeze(1) if d_centres.shape[1] == 1 else d_centres.sum(1)


backward_operator = torch.library.custom_op("regard::one_pass_backward", run_backward, mutates_args=())


@backward_operator.register_fake
def _(gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, context: Tensor, lse: Tensor, *rest: Any) -> Five:
    bias, centres, (wants_bias, wants_centres) = rest[0], rest[1], rest[-2:]
    sides = (torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (query, keys, values))
    d_bias = torch.empty_like(bias, memory_format=torch.contiguous_format) if wants_bias else lse.new_empty(0)
    d_centres = torch.empty_like(centres, memory_format=torch.contiguous_format) if wants_centres else lse.new_empty(0)
    return *sides, d_bias, d_centres  # type: ignore[return-value]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    plan = inputs[3:-1]
    ctx.save_for_backward(*inputs[:3], output[0], output[1], *plan[:TENSORS], *plan[FIRST_ORDER:])
    ctx.numbers = plan[TENSORS:FIRST_ORDER]
    ctx.wants = [inputs[place] is not None and ctx.needs_input_grad[place] for place in (3, 4)]


def _backward(ctx: Any, gradient: Tensor, *unused: Any) -> tuple[Tensor | None, ...]:
    saved, order = ctx.saved_tensors[: 5 + TENSORS], ctx.saved_tensors[5 + TENSORS :]
    d_query, d_keys, d_values, d_bias, d_centres = backward_operator(gradient, *saved, *ctx.numbers, *order, *ctx.wants)
    optional_gradients = [part if needed else None for part, needed in zip((d_bias, d_centres), ctx.wants, strict=True)]
    return d_query, d_keys, d_values, *optional_gradients, *[None] * (len(Plan._fields) - 1)


forward_operator.register_autograd(_backward, setup_context=_save)


class EagerAttention(torch.autograd.Function):
    """Autograd function of FlashAttention for eager PyTorch: an operator of torch.library costs more than the launches.

    Only the differentiable fields of a plan are separate arguments: each costs the host time in forward and backward.
    Without statistics it returns context and log-sum-exp alone. It saves its tensors in `forward`: setup_context would have
    the host look up the names of all arguments at every call.
    """

    @staticmethod
    def forward(ctx, query, keys, values, bias, centres, plan, requested):  # type: ignore[no-untyped-def]
        outputs = launch.forward(
            query, keys, values, plan, requested, launch.allocate_minimal(query, keys, values, requested)
        )
        ctx.save_for_backward(query, keys, values, *outputs[:2], *plan[:TENSORS], *plan[FIRST_ORDER:])
        ctx.numbers = plan[TENSORS:FIRST_ORDER]
        differentiated = tuple(outputs) if any(requested) else outputs[:2]
        ctx.mark_non_differentiable(*differentiated[1:])
        ctx.set_materialize_grads(False)
        return differentiated

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient, *unused):  # type: ignore[no-untyped-def]
        if gradient is None:  # the context has no gradient
            return (None,) * 7
        query, keys, values, context, lse, *tensors = ctx.saved_tensors
        plan = Plan._make((*tensors[:TENSORS], *ctx.numbers, *tensors[TENSORS:]))
        wants_bias, wants_centres = ctx.needs_input_grad[3:5]
        gradients = launch.backward(gradient, query, keys, values, context, lse, plan, wants_bias, wants_centres)
        d_bias = gradients.bias.sum_to_size(tensors[0].shape) if wants_bias else None
        d_centres = _sum_heads(gradients.centres).to(tensors[1].dtype) if wants_centres else None
        return gradients.query, gradients.keys, gradients.values, d_bias, d_centres, None, None


def attend_eager(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, requested: StatisticsRequest) -> ForwardOutput:
    """Eager FlashAttention, which saves tensors only where a backward may follow."""
    inputs = query, keys, values, plan.bias, plan.centres
    if not torch.is_grad_enabled() or not any(text is not None and text.requires_grad for text in inputs):
        return launch.forward(query, keys, values, plan, requested, launch.allocate_minimal(query, keys, values, requested))
    outputs = EagerAttention.apply(*inputs, plan, requested)  # type: ignore[no-untyped-call]
    return ForwardOutput(*outputs) if any(requested) else ForwardOutput(*outputs, *launch.build_empty_statistics(query))


def _parse_request(numbers: list[int]) -> StatisticsRequest:
    peak, entropy, moments, received, uniform, top = numbers
    return StatisticsRequest(bool(peak), bool(entropy), moments, bool(received), bool(uniform), top)
