"""Launchers of the backward: dScores in small chunks, and the gradients from them."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.capability import allows_assembly
from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.triton.additive import backward, split_k
from regard.kernels.triton.additive.arguments import (
    Dropout,
    MaskArguments,
    ScoreInputs,
    Tiles,
    heads,
    next_power,
    parts,
    round_up,
    use_device,
    uses_tensor_cores,
)
from regard.kernels.triton.additive.chunks import limit_workspace, split_chunks
from regard.kernels.triton.additive.gradients import Gradients, GradientSums, sum_groups
from regard.kernels.triton.additive.launch_scores import ScoreParts, compare_chunk


class BackwardInputs(NamedTuple):
    """Inputs of the backward: log-sum-exp, and the gradients of context and weights."""

    total: Float[Tensor, "batch heads queries"]
    context: Float[Tensor, "batch heads queries value"]
    weights: Float[Tensor, "batch heads queries keys"] | None


def run_backward(
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    incoming: BackwardInputs,
    scoped: MaskArguments,
    dropped: Dropout,
    tiles: Tiles,
    saved_scores: Float[Tensor, "parts batch_heads padded_queries padded_keys"] | None = None,
) -> Gradients:
    """Backward of many queries, a chunk of heads or of queries at a time; `saved_scores` or recomputed ones."""
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    saved_bytes = 0 if saved_scores is None else saved_scores.numel() * saved_scores.element_size()
    chunks = split_chunks(sides, value, tiles, backward=True, saved_bytes=saved_bytes, hides=scoped.hides)
    if saved_bytes and len(chunks[0].rows) < queries:  # their partial sums exceeded the workspace
        saved_scores, saved_bytes, chunks = None, 0, split_chunks(sides, value, tiles, backward=True, hides=scoped.hides)
    lean = saved_scores is None and len(chunks) > 1 and is_lean(sides, value, incoming, dropped, tiles)
    expanded = value
    if lean:
        chunks, value = split_chunks(sides, value, tiles, backward=True, hides=scoped.hides, lean=True), value.contiguous()
    elif groups != value.shape[1]:
        expanded = value.repeat_interleave(groups // value.shape[1], dim=1)
    scope, drop = scoped.arguments(), dropped.arguments()
    splits_queries = len(chunks[0].rows) < queries
    sums = GradientSums.of(
        sides, splits_queries, limit_workspace(sides, value, tiles, backward=True, saved_bytes=saved_bytes)
    )
    d_value = value.new_empty(batch * groups, keys, value.shape[3])
    dv_sum = d_value.new_empty(1, *d_value.shape[1:], dtype=torch.float32) if splits_queries else None
    d_contexts, expanded = incoming.context.flatten(0, 1), expanded.flatten(0, 1)
    with use_device(value):
        for chunk in chunks:
            head_slice, rows = (slice(part.start, part.stop) for part in chunk)
            d_context = d_contexts[head_slice, rows]
            if lean:
                compared = compare_chunk(sides, chunk, scope, tiles, incoming.total)
                dscores = compared.scores[0]
                write_dvalues(
                    d_value[head_slice], dscores[:, : len(chunk.rows), :keys].mT, d_context, chunk.rows, queries, dv_sum
                )
                replace_weights(compared, sides, value, incoming, tiles)
            else:
                compared = (
                    compare_chunk(sides, chunk, scope, tiles)
                    if saved_scores is None
                    else ScoreParts(saved_scores[:, head_slice], chunk)
                )
                dscores = compared.scores[0] if saved_scores is None else torch.empty_like(compared.scores[0])
                da = multiply_batches(d_context, expanded[head_slice].mT, value.dtype)
                write_dscores(compared, dscores, da, sides, {**scope, **drop}, incoming, tiles)
                write_dvalues(d_value[head_slice], da.mT, d_context.to(value.dtype), chunk.rows, queries, dv_sum)
                del da
            sums.gather(sides, dscores, chunk, tiles, scoped.hides)
            del compared, dscores  # before the next is allocated
    return sums.gradients(sides, sum_groups(torch.unflatten(d_value, 0, (batch, groups)), value))


def is_lean(sides: ScoreInputs, value: Tensor, incoming: BackwardInputs, dropped: Dropout, tiles: Tiles) -> bool:
    """True if ds may overwrite half-precision weights, a third of the memory of scores and weights.

    It needs bfloat16, since ds underflows in float16, no dropout, and no gradient of the weights.
    """
    plain = incoming.weights is None and not dropped.rate
    return plain and uses_tensor_cores(sides, tiles) and value.dtype == incoming.context.dtype == torch.bfloat16


def multiply_batches(left: Tensor, right: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Batched matrix product accumulated in float32, with a float32 output by default."""
    if left.is_cuda and left.dtype == right.dtype and left.dtype != torch.float32:
        return torch.bmm(left, right, out_dtype=dtype) if dtype != left.dtype else torch.bmm(left, right)
    return torch.bmm(left.float(), right.float()).to(dtype)


def write_dvalues(
    d_value: Tensor, weights: Tensor, d_context: Tensor, rows: range, queries: int, total: Tensor | None
) -> None:
    """Gradient of the values of a chunk, Aᵀ dO.

    Several chunks of the queries of one head accumulate in `single`, and the last one writes it.
    """
    if total is None and d_value.is_cuda:  # half precision is accumulated in float32 all the same
        torch.bmm(weights, d_context, out=d_value)
    elif total is None:
        d_value.copy_(multiply_batches(weights, d_context))
    else:
        product = multiply_batches(weights, d_context)
        total.copy_(product if rows.start == 0 else total + product)
        if rows.stop == queries:
            d_value.copy_(total)


def write_dscores(
    compared: ScoreParts,
    dscores: Float[Tensor, "some_heads padded_queries padded_keys"],
    da: Float[Tensor, "some_heads some_queries keys"],
    sides: ScoreInputs,
    mask_arguments: dict[str, Any],
    incoming: BackwardInputs,
    tiles: Tiles,
) -> None:
    """Write ds = a da - a Σ a da of a chunk, possibly over its scores, and its weights after dropout into `shares`.

    `shares` holds da before, rounded to the precision of the values as in PyTorch.
    """
    _, count, tall, wide = compared.scores.shape
    arguments = {
        **compared.arguments(),
        **mask_arguments,
        "dscores": dscores,
        "da": da,
        "total": incoming.total,
        "d_weights": incoming.weights,
        "D_WEIGHTS": incoming.weights is not None,
        "dropped": da,
        "heads": sides.query.shape[1],
        "T": sides.query.shape[2],
        "S": sides.key.shape[2],
        "ROWS": tiles.slope_rows,
        "COLUMNS": min(tiles.slope_columns, next_power(wide)),
    }
    launch_cached(backward.write_dscores, (tall // tiles.slope_rows, count, 1), arguments, num_warps=tiles.row_warps)


def replace_weights(
    compared: ScoreParts,
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    incoming: BackwardInputs,
    tiles: Tiles,
) -> None:
    """Write ds of a chunk over its weights, after summing Σ a da over tiles of keys."""
    _, count, tall, wide = compared.scores.shape
    across, size = wide // tiles.wide, value.shape[3]
    arguments = {
        **compared.arguments(),
        "weights": compared.scores,
        "value": value,
        "d_context": incoming.context,
        "sums": value.new_empty(count, 2, across, tall, dtype=torch.float32),
        "heads": sides.query.shape[1],
        "value_heads": value.shape[1],
        "T": sides.query.shape[2],
        "S": sides.key.shape[2],
        "V": size,
        "ROWS": tiles.four_rows,
        "COLUMNS": tiles.wide,
        "VALUES": max(16, min(64, next_power(size))),
        "TILES": min(16, next_power(across)),
        "PRECISION": tiles.precision,
    }
    for first in (True, False):
        launch_cached(
            backward.replace_weights,
            (across, tall // tiles.four_rows, count),
            {**arguments, "SUMS": first},
            num_warps=tiles.row_warps,
        )


def run_backward_from_scores(
    sides: ScoreInputs, dscores: Float[Tensor, "batch heads queries keys"], tiles: Tiles
) -> Gradients:
    """Backward from given dScores."""
    chunks = split_chunks(sides, None, tiles, backward=True, hides=True)
    (_, _, queries, _), keys = sides.query.shape, sides.key.shape[2]
    sums = GradientSums.of(sides, len(chunks[0].rows) < queries, limit_workspace(sides, None, tiles, backward=True))
    flat = dscores.flatten(0, 1)
    with use_device(flat):
        for chunk in chunks:
            head_slice, rows = (slice(part.start, part.stop) for part in chunk)
            tall, wide = round_up(len(chunk.rows), tiles.tall), round_up(keys, tiles.wide)
            padded = flat.new_zeros(len(chunk.heads), tall, wide, dtype=torch.float32)
            padded[:, : len(chunk.rows), :keys] = flat[head_slice, rows]
            sums.gather(sides, padded, chunk, tiles, hides=True)  # a sparse normaliser has mostly zero dScores
    return sums.gradients(sides, None)


def run_step_backward(
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    context: Float[Tensor, "batch heads 1 value"],
    d_weights: Float[Tensor, "batch heads 1 keys"] | None,
    weights: Float[Tensor, "batch heads 1 keys"],
    dropped: Float[Tensor, "batch heads 1 keys"],
    tiles: Tiles,
) -> Gradients:
    """Backward of one query, whose weights were saved: one pass over the keys gives dq, dk and dv."""
    groups = sides.query.shape[1]
    expanded = value.repeat_interleave(groups // value.shape[1], dim=1) if groups != value.shape[1] else value
    a_da = multiply_batches(context.flatten(0, 1), expanded.flatten(0, 1).mT).view_as(dropped)
    a_da = (dropped * a_da).masked_fill(dropped == 0, 0.0)  # a masked value may be NaN
    a_da = a_da if d_weights is None else a_da + weights * d_weights
    dscores = a_da - weights * a_da.sum(-1, keepdim=True)
    return trace_step(sides, value, dscores, context, dropped, tiles)


def trace_step(
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    dscores: Float[Tensor, "batch heads 1 keys"],
    d_context: Float[Tensor, "batch heads 1 value"],
    dropped: Float[Tensor, "batch heads 1 keys"],
    tiles: Tiles,
) -> Gradients:
    """All gradients of one query, from dScores and the gradient of the context."""
    (batch, groups, _, hidden), (keys, size) = sides.query.shape, value.shape[2:]
    widest, blocks = max(hidden, size), parts(keys, tiles.step_columns)
    units = min(tiles.step_units, next_power(widest))
    d_key, d_value = (tensor.new_empty(batch, groups, keys, tensor.shape[3]) for tensor in (sides.key, value))
    dq_parts, dv_parts = dscores.new_empty(2, batch * groups, blocks, hidden)
    arguments = {
        **heads(sides.query, sides.key, sides.v),
        "query": sides.query,
        "key": sides.key,
        "v": sides.v,
        "dscores": dscores.contiguous(),
        "dropped": dropped.contiguous(),
        "d_context": d_context.contiguous(),
        "d_key": d_key,
        "d_value": d_value,
        "dq_parts": dq_parts,
        "dv_parts": dv_parts,
        "S": keys,
        "D": hidden,
        "V": size,
        "blocks": blocks,
        "COLUMNS": tiles.step_columns,
        "UNITS": units,
        "ASSEMBLY": allows_assembly(),
    }
    with use_device(d_key):
        launch_cached(
            split_k.trace_kernel, (blocks * batch * groups, parts(widest, units), 1), arguments, num_warps=tiles.step_warps
        )
    d_query = dq_parts.sum(1).view(sides.query.shape).to(sides.query.dtype)
    return GradientSums(d_query, d_key, dv_parts.sum(1), 0).gradients(sides, sum_groups(d_value, value))
