"""Attention of short sequences as a custom operator with autograd, opaque to torch.compile.

The output has the memory layout (batch, position, head, dim), so that concatenating the heads copies nothing.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.runtime.tiles import use_device
from regard.kernels.triton.flash.configs import round_up

Three = tuple[Tensor, Tensor, Tensor]


def attend_short(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    keep: Tensor | None,
    query_documents: Tensor | None,
    key_documents: Tensor | None,
    causal: bool,
    offset: int,
    scale: float,
) -> Tensor:
    """Context of every query; `offset` is the position of the first.

    In packed rows `query_documents` and `key_documents` number the documents of the queries and the keys. Eager PyTorch
    uses an autograd function: an operator of torch.library costs the host as much as the launch.
    """
    arguments = keep, query_documents, key_documents, causal, offset, scale
    if torch.compiler.is_compiling():
        context: Tensor = forward_operator(query, keys, values, *arguments)
        return context
    if torch.is_grad_enabled() and (query.requires_grad or keys.requires_grad or values.requires_grad):
        return EagerAttention.apply(query, keys, values, arguments)  # type: ignore[no-untyped-call]
    return compute(query, keys, values, *arguments)


def compute(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    keep: Tensor | None,
    query_documents: Tensor | None,
    key_documents: Tensor | None,
    causal: bool,
    offset: int,
    scale: float,
) -> Tensor:
    """Forward operator: the context of every query."""
    from regard.kernels.triton.short import kernel as program

    query, keys, values = map(make_dense, (query, keys, values))
    context = allocate_output(query, values.shape[3])
    tensors = query, keys, values, keep, query_documents, key_documents, context
    _launch(program.forward, tensors, query, values, causal, offset, scale)
    return context


forward_operator = torch.library.custom_op("regard::brief", compute, mutates_args=())


@forward_operator.register_fake
def _(query: Tensor, keys: Tensor, values: Tensor, *rest: Any) -> Tensor:
    return allocate_output(query, values.shape[3])


@torch.library.custom_op("regard::brief_backward", mutates_args=())
def backward_operator(
    d_context: Tensor,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    keep: Tensor | None,
    query_documents: Tensor | None,
    key_documents: Tensor | None,
    causal: bool,
    offset: int,
    scale: float,
) -> Three:
    """Backward operator: the gradients of query, keys and values."""
    gradients = allocate_output(query), allocate_output(keys), allocate_output(values)
    _launch_backward(gradients, d_context, query, keys, values, keep, query_documents, key_documents, causal, offset, scale)
    return gradients


@backward_operator.register_fake
def _(d_context: Tensor, query: Tensor, keys: Tensor, values: Tensor, *rest: Any) -> Three:
    return allocate_output(query), allocate_output(keys), allocate_output(values)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6])
    ctx.numbers = inputs[6:]


def _backward(ctx: Any, d_context: Tensor) -> tuple[Tensor | None, ...]:
    query, keys, values, *scope = ctx.saved_tensors
    if torch.compiler.is_compiling():
        gradients = backward_operator(d_context, query, keys, values, *scope, *ctx.numbers)
    else:  # an operator may not return tensors that share memory
        gradients = allocate_gradients(query, keys, values)
        _launch_backward(gradients, d_context, query, keys, values, *scope, *ctx.numbers)
    return *gradients, *[None] * 6


def _launch_backward(gradients: Three, d_context: Tensor, query: Tensor, keys: Tensor, values: Tensor, *rest: Any) -> None:
    """Launch the backward into the gradients."""
    from regard.kernels.triton.short import kernel as program

    scope, numbers, (query, keys, values, d_context) = rest[:3], rest[3:], map(make_dense, (query, keys, values, d_context))
    _launch(program.backward, (query, keys, values, *scope, d_context, *gradients), query, values, *numbers)


def allocate_gradients(query: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Allocate gradients in the layout of the inputs: those of a packed projection are packed too (MultiHead.packed)."""
    batch, heads, _, size = query.shape
    parts = [tensor for tensor in (query, keys, values) if tensor.stride(2) == keys.stride(2) and tensor.shape == keys.shape]
    count = keys.stride(2) // (heads * size)
    if keys.shape != values.shape or keys.stride(2) != count * heads * size or len(parts) != count or count < 2:
        return allocate_output(query), allocate_output(keys), allocate_output(values)
    whole = query.new_empty(batch, keys.shape[2], count, heads, size).transpose(1, 3).unbind(2)
    return (whole[0], whole[1], whole[2]) if count == 3 else (allocate_output(query), whole[0], whole[1])


forward_operator.register_autograd(_backward, setup_context=_save)


class EagerAttention(torch.autograd.Function):
    """Autograd function of attention of short sequences; what has no gradient is one argument."""

    @staticmethod
    def forward(ctx, query, keys, values, arguments):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(query, keys, values, *arguments[:3])
        ctx.numbers = arguments[3:]
        return compute(query, keys, values, *arguments)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_context):  # type: ignore[no-untyped-def]
        query, keys, values, *scope = ctx.saved_tensors
        gradients = allocate_gradients(query, keys, values)
        _launch_backward(gradients, d_context, query, keys, values, *scope, *ctx.numbers)
        return *gradients, None


def make_dense(data: Float[Tensor, "batch heads time size"]) -> Float[Tensor, "batch heads time size"]:
    """The tensor with a contiguous last axis."""
    return data if data.stride(3) == 1 else data.contiguous()


def allocate_output(
    like: Float[Tensor, "batch heads time size"], size: int | None = None
) -> Float[Tensor, "batch heads time _"]:
    """Allocate a tensor whose heads are contiguous at each position."""
    batch, heads, time, own = like.shape
    return like.new_empty(batch, time, heads, own if size is None else size).transpose(1, 2)


def _launch(
    program: Any, tensors: tuple[Tensor | None, ...], query: Tensor, values: Tensor, causal: bool, offset: int, scale: float
) -> None:
    (batch, heads, queries, size), (keys, value) = query.shape, values.shape[2:]
    strides = [stride for tensor in tensors if tensor is not None and tensor.ndim == 4 for stride in tensor.stride()[:3]]
    keep, query_documents, key_documents = (None if tensor is None else tensor.contiguous() for tensor in tensors[3:6])
    tensors = (*tensors[:3], keep, query_documents, key_documents, *tensors[6:])
    rows, columns, dims, wide = map(round_up, (queries, keys, size, value))
    constants = {
        "ROWS": rows,
        "KEYS": columns,
        "DIMS": dims,
        "VALUES": wide,
        "KEEP": keep is not None,
        "CAUSAL": causal,
        "PACKED": query_documents is not None,
    }
    numbers = heads, queries, keys, size, value, offset, scale
    with use_device(query.device):  # that of Triton's launch
        launch_cached(
            program,
            (batch * heads, 1, 1),
            constants,
            (*tensors, *strides, *numbers),
            num_warps=2 if max(rows, columns) <= 32 else 4,
        )
