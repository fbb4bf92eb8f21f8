"""Sparsemax and entmax attention as a custom operator with autograd, opaque to torch.compile."""

from typing import Any

import torch
from torch import Tensor

from regard.kernels.triton.entmax import launch
from regard.kernels.triton.entmax.launch import Alpha
from regard.kernels.triton.flash.arguments import Plan


def attend(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, alpha: Alpha) -> Tensor:
    """Context of sparsemax or entmax attention; a plan's bias, centres and order are not supported."""
    _, _, keep, mask, offsets, seed, offset, window, causal, _, _, scale, dropout, tiles, *_ = plan
    arguments = keep, mask, offsets, seed, offset, window, causal, scale, dropout, tiles, alpha.alpha
    if not torch.compiler.is_compiling():
        return EagerAttention.apply(query, keys, values, alpha.alphas, arguments)[0]  # type: ignore[no-untyped-call]
    context: Tensor = sparse_pass(query, keys, values, alpha.alphas, *arguments)[0]
    return context


def run_forward(
    query: Tensor, keys: Tensor, values: Tensor, alphas: Tensor | None,
    keep: Tensor | None, mask: Tensor | None, offsets: Tensor | None, seed: Tensor | None,
    offset: int, window: int, causal: bool, scale: float, dropout: float, tiles: list[int], alpha: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Forward operator: the fields of `ForwardOutput`."""
    plan = _build_plan(keep, mask, offsets, seed, offset, window, causal, scale, dropout, tiles)
    return tuple(launch.forward(query, keys, values, plan, Alpha(alpha, alphas)))  # type: ignore[return-value]


sparse_pass = torch.library.custom_op("regard::sparse_pass", run_forward, mutates_args=())


@sparse_pass.register_fake
def _(query: Tensor, keys: Tensor, values: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return tuple(launch.allocate_output(query, values))  # type: ignore[return-value]


Four = tuple[Tensor, Tensor, Tensor, Tensor]


def run_backward(
    gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, edges: Tensor, alphas: Tensor | None,
    keep: Tensor | None, mask: Tensor | None, offsets: Tensor | None, seed: Tensor | None,
    offset: int, window: int, causal: bool, scale: float, dropout: float, tiles: list[int], alpha: float,
) -> Four:  # fmt: skip
    """Backward operator: the fields of `Gradients`."""
    plan = _build_plan(keep, mask, offsets, seed, offset, window, causal, scale, dropout, tiles)
    return tuple(launch.backward(gradient, query, keys, values, edges, plan, Alpha(alpha, alphas)))  # type: ignore[return-value]


sparse_pass_backward = torch.library.custom_op("regard::sparse_pass_backward", run_backward, mutates_args=())


@sparse_pass_backward.register_fake
def _(gradient: Tensor, query: Tensor, keys: Tensor, values: Tensor, edges: Tensor, *rest: Any) -> Four:
    sides = (torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (query, keys, values))
    alphas = rest[0]
    return *sides, edges.new_empty(0 if alphas is None else alphas.shape)  # type: ignore[return-value]


def _build_plan(
    keep: Tensor | None, mask: Tensor | None, offsets: Tensor | None, seed: Tensor | None,
    offset: int, window: int, causal: bool, scale: float, dropout: float, tiles: list[int],
) -> Plan:  # fmt: skip
    return Plan(None, None, keep, mask, offsets, seed, offset, window, causal, 0, 1.0, scale, dropout, tiles)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:3], output[1], *inputs[3:8])
    ctx.numbers = inputs[8:]


def _backward(ctx: Any, gradient: Tensor, unused: Any) -> tuple[Tensor | None, ...]:
    d_query, d_keys, d_values, d_alphas = sparse_pass_backward(gradient, *ctx.saved_tensors, *ctx.numbers)
    return d_query, d_keys, d_values, d_alphas if d_alphas.numel() else None, *[None] * 11


sparse_pass.register_autograd(_backward, setup_context=_save)


class EagerAttention(torch.autograd.Function):
    """Autograd function of sparsemax and entmax attention for eager PyTorch, which takes the host less time.

    Everything without a gradient is one argument.
    """

    @staticmethod
    def forward(ctx, query, keys, values, alphas, arguments):  # type: ignore[no-untyped-def]
        context, edges = run_forward(query, keys, values, alphas, *arguments)
        ctx.save_for_backward(query, keys, values, edges, alphas, *arguments[:4])
        ctx.numbers = arguments[4:]
        ctx.mark_non_differentiable(edges)
        return context, edges

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient, unused):  # type: ignore[no-untyped-def]
        d_query, d_keys, d_values, d_alphas = run_backward(gradient, *ctx.saved_tensors, *ctx.numbers)
        return d_query, d_keys, d_values, d_alphas if d_alphas.numel() else None, None
