"""Additive attention and its scores as autograd functions, and as custom operators for torch.compile.

Eager PyTorch uses the function: an operator of torch.library costs the host as much as all launches together.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.triton.additive import launch, launch_backward
from regard.kernels.triton.additive.arguments import Dropout, MaskArguments, ScoreInputs, Tiles

TILES = Tiles()
"""Tile sizes of the kernels."""

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def attention(
    query: Float[Tensor, "batch heads queries hidden"],
    key: Float[Tensor, "batch key_heads keys hidden"],
    value: Float[Tensor, "batch value_heads keys value"],
    v: Float[Tensor, "v_heads hidden"],
    scoped: MaskArguments = MaskArguments(),
    dropped: Dropout = Dropout(),
    dtype: torch.dtype | None = None,
    weights: torch.dtype | None = None,
) -> tuple[Float[Tensor, "batch heads queries value"], Float[Tensor, "batch heads queries keys"] | None]:
    """Additive attention softmax(vᵀ tanh(q + k)) values, with the weights if requested, in the given dtypes."""
    context = str(dtype or value.dtype).removeprefix("torch.")
    weights_dtype = "" if weights is None else str(weights).removeprefix("torch.")
    arguments = OperatorArguments(scoped, dropped, context, weights_dtype)
    if torch.compiler.is_compiling():
        outputs = forward_operator(query, key, value, v, *arguments.flat())
    else:
        outputs = attend_eager(query, key, value, v, arguments)
    return outputs[0], None if weights is None else outputs[2].to(weights)


def scores(
    query: Float[Tensor, "batch heads queries hidden"],
    key: Float[Tensor, "batch key_heads keys hidden"],
    v: Float[Tensor, "v_heads hidden"],
) -> Float[Tensor, "batch heads queries keys"]:
    """Additive scores vᵀ tanh(q + k) of all pairs."""
    all_scores: Tensor = scores_operator(query, key, v)
    return all_scores


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    v: Tensor,
    keep: Tensor | None,
    bits: Tensor | None,
    kinds: Tensor | None,
    offsets: Tensor | None,
    offset: int,
    behind: int,
    ahead: int,
    rate: float,
    seed: Tensor | None,
    context: str,
    weights: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Forward operator: `compute` with argument types of torch.library."""
    scoped = MaskArguments(keep, bits, kinds, offsets, offset, behind, ahead)
    return compute(query, key, value, v, OperatorArguments(scoped, Dropout(rate, seed), context, weights))


class OperatorArguments(NamedTuple):
    """Arguments without a gradient: mask, dropout, and the dtypes of the context and of the weights, if requested."""

    scoped: MaskArguments
    dropped: Dropout
    context: str
    weights: str

    def flat(self) -> tuple[Any, ...]:
        """Flatten into the operator's arguments."""
        return *self.scoped, *self.dropped, self.context, self.weights


def compute(
    query: Tensor, key: Tensor, value: Tensor, v: Tensor, arguments: OperatorArguments, save_scores: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Context, log-sum-exp, and weights if requested; for one query always its weights before and after dropout.

    With `save_scores` the scores of many queries come last, where `Tiles.saved_scores` allows.
    """
    scoped, dropped, context, weights = arguments
    batch, heads, queries, _ = query.shape
    if not (query.numel() and key.numel() and value.numel()):
        context_output = value.new_zeros(batch, heads, queries, value.shape[3], dtype=DTYPES[context])
        weights_output = query.new_zeros(
            *_find_weights_shape(query, key, weights)[0], dtype=_find_weights_shape(query, key, weights)[1]
        )
        return context_output, query.new_zeros(0), weights_output, query.new_zeros(0)
    if queries == 1:
        step = launch.run_step(query, key, value, v, scoped, dropped, DTYPES[context], TILES)
        return step.context, query.new_empty(0), step.weights, step.dropped if dropped.rate else query.new_empty(0)
    sides = ScoreInputs.of(query, key, v)
    weights_dtype = DTYPES[weights] if weights else None
    many = launch.run_forward(sides, value, scoped, dropped, DTYPES[context], weights_dtype, TILES, save_scores)
    weights_output = query.new_empty(0) if many.weights is None else many.weights
    return many.context, many.total, weights_output, query.new_empty(0) if many.scores is None else many.scores


def _find_weights_shape(query: Tensor, key: Tensor, weights: str) -> tuple[tuple[int, ...], torch.dtype]:
    """Shape and dtype of the returned weights, which for one query are always returned, in float32."""
    whole = *query.shape[:3], key.shape[2]
    if query.shape[2] == 1:
        return whole, torch.float32
    return (whole, DTYPES[weights]) if weights else ((0,), query.dtype)


forward_operator = torch.library.custom_op("regard::additive_attention", forward, mutates_args=())


@forward_operator.register_fake
def _(  # type: ignore[no-untyped-def]
    query, key, value, v, keep, bits, kinds, offsets, offset, behind, ahead, rate, seed, context, weights
):
    shape, dtype = _find_weights_shape(query, key, weights)
    alone = query.shape[2] == 1
    single = torch.float32
    return (
        value.new_empty(*query.shape[:3], value.shape[3], dtype=DTYPES[context]),
        query.new_empty(0) if alone else query.new_empty(query.shape[:3], dtype=single),
        query.new_empty(shape, dtype=dtype),
        query.new_empty(shape, dtype=single) if alone and rate else query.new_empty(0),
    )


def backward(
    d_context: Tensor,
    d_weights: Tensor | None,
    total: Tensor,
    saved_weights: Tensor,
    saved: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    v: Tensor,
    keep: Tensor | None,
    bits: Tensor | None,
    kinds: Tensor | None,
    offsets: Tensor | None,
    offset: int,
    behind: int,
    ahead: int,
    rate: float,
    seed: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and v."""
    if not (query.numel() and key.numel() and value.numel()):
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value), torch.zeros_like(v)
    sides = ScoreInputs.of(query, key, v)
    if query.shape[2] == 1:
        gradients = launch_backward.run_step_backward(
            sides, value, d_context, d_weights, saved_weights, saved if rate else saved_weights, TILES
        )
    else:
        scoped, dropped = MaskArguments(keep, bits, kinds, offsets, offset, behind, ahead), Dropout(rate, seed)
        incoming = launch_backward.BackwardInputs(total, d_context, None if d_weights is None else d_weights.contiguous())
        gradients = launch_backward.run_backward(
            sides, value, incoming, scoped, dropped, TILES, saved if saved.numel() else None
        )
    assert gradients.value is not None, "the values took part"
    return gradients.query, gradients.key, gradients.value, gradients.v


backward_operator = torch.library.custom_op("regard::additive_attention_backward", backward, mutates_args=())


@backward_operator.register_fake
def _(d_context, d_weights, total, shown, after, query, key, value, v, *rest):  # type: ignore[no-untyped-def]
    return tuple(torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (query, key, value, v))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    query, key, value, v, keep, bits, kinds, offsets, offset, behind, ahead, rate, seed, _, _ = inputs
    context, total, shown, after = output
    shown = shown if query.shape[2] == 1 else shown.new_empty(0)  # weights of many queries are recomputed
    ctx.save_for_backward(total, shown, after, query, key, value, v, keep, bits, kinds, offsets, seed)
    ctx.numbers, ctx.context = (offset, behind, ahead, rate), (context.shape, context.dtype)
    ctx.mark_non_differentiable(total, after)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, d_context: Tensor | None, d_total: None, d_shown: Tensor | None, d_after: None) -> tuple[Any, ...]:
    return *_gradients(ctx, d_context, d_shown, backward_operator), *[None] * 11


def _gradients(
    ctx: Any, d_context: Tensor | None, d_shown: Tensor | None, run: Callable[..., tuple[Tensor, ...]]
) -> tuple[Tensor, ...]:
    *saved, keep, bits, kinds, offsets, seed = ctx.saved_tensors
    if d_context is None:
        d_context = saved[0].new_zeros(ctx.context[0], dtype=ctx.context[1])
    return run(d_context.contiguous(), d_shown, *saved, keep, bits, kinds, offsets, *ctx.numbers, seed)


forward_operator.register_autograd(_backward, setup_context=_save)


class EagerAttention(torch.autograd.Function):
    """Autograd function of additive attention, differentiable once; use impl="reference" for higher orders.

    Everything without a gradient is one argument, since each costs the host time in forward and backward. It saves its
    tensors in `forward`: setup_context would have the host look up the names of all arguments at every call.
    """

    @staticmethod
    def forward(ctx, query, key, value, v, arguments):  # type: ignore[no-untyped-def]
        outputs = compute(query, key, value, v, arguments, save_scores=True)
        _save(ctx, (query, key, value, v, *arguments.flat()), outputs)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_context, d_total, d_shown, d_after):  # type: ignore[no-untyped-def]
        return *_gradients(ctx, d_context, d_shown, backward), None


def attend_eager(
    query: Tensor, key: Tensor, value: Tensor, v: Tensor, arguments: OperatorArguments
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Eager attention, which saves tensors only where a backward may follow."""
    learns = query.requires_grad or key.requires_grad or value.requires_grad or v.requires_grad
    if learns and torch.is_grad_enabled():
        return EagerAttention.apply(query, key, value, v, arguments)  # type: ignore[no-untyped-call]
    return compute(query, key, value, v, arguments)


@torch.library.custom_op("regard::additive_scores_gpu", mutates_args=())
def scores_operator(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Operator of the scores Σ v tanh of all pairs."""
    if not (query.numel() and key.numel()):
        return query.new_zeros(*query.shape[:3], key.shape[2])
    return launch.compute_all_scores(ScoreInputs.of(query, key, v), TILES)


@scores_operator.register_fake
def _(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    return query.new_empty(*query.shape[:3], key.shape[2])


@torch.library.custom_op("regard::additive_scores_gpu_backward", mutates_args=())
def scores_backward_operator(dscores: Tensor, query: Tensor, key: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Operator of the backward of the scores: dQ, dK and dv from dScores."""
    if not dscores.numel():
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(v)
    gradients = launch_backward.run_backward_from_scores(ScoreInputs.of(query, key, v), dscores, TILES)
    return gradients.query, gradients.key, gradients.v


@scores_backward_operator.register_fake
def _(dscores: Tensor, query: Tensor, key: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    query, key, v = (torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (query, key, v))
    return query, key, v


scores_operator.register_autograd(
    lambda ctx, dscores: scores_backward_operator(dscores, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
