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
    flowing: BackwardInputs,
    scoped: MaskArguments,
    dropped: Dropout,
    tiles: Tiles,
    kept: Float[Tensor, "parts batch_heads padded_queries padded_keys"] | None = None,
) -> Gradients:
    """Backward of many queries, a chunk of heads or of queries at a time; scores are `kept` or recomputed."""
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    held = 0 if kept is None else kept.numel() * kept.element_size()
    each = split_chunks(sides, value, tiles, back=True, kept=held, hides=scoped.hides)
    if held and len(each[0].rows) < queries:  # their partial sums exceeded the workspace
        kept, held, each = None, 0, split_chunks(sides, value, tiles, back=True, hides=scoped.hides)
    lean = kept is None and len(each) > 1 and is_lean(sides, value, flowing, dropped, tiles)
    spread = value
    if lean:
        each, value = split_chunks(sides, value, tiles, back=True, hides=scoped.hides, lean=True), value.contiguous()
    elif groups != value.shape[1]:
        spread = value.repeat_interleave(groups // value.shape[1], dim=1)
    scope, drop = scoped.arguments(), dropped.arguments()
    several = len(each[0].rows) < queries
    found = GradientSums.of(sides, several, limit_workspace(sides, value, tiles, back=True, kept=held))
    d_value = value.new_empty(batch * groups, keys, value.shape[3])
    single = d_value.new_empty(1, *d_value.shape[1:], dtype=torch.float32) if several else None
    flows, spread = flowing.context.flatten(0, 1), spread.flatten(0, 1)
    with use_device(value):
        for chunk in each:
            these, rows = (slice(part.start, part.stop) for part in chunk)
            flow = flows[these, rows]
            if lean:
                compared = compare_chunk(sides, chunk, scope, tiles, flowing.total)
                slopes = compared.scores[0]
                write_dvalues(d_value[these], slopes[:, : len(chunk.rows), :keys].mT, flow, chunk.rows, queries, single)
                replace_weights(compared, sides, value, flowing, tiles)
            else:
                compared = compare_chunk(sides, chunk, scope, tiles) if kept is None else ScoreParts(kept[:, these], chunk)
                slopes = compared.scores[0] if kept is None else torch.empty_like(compared.scores[0])
                shares = multiply_batches(flow, spread[these].mT, value.dtype)
                write_dscores(compared, slopes, shares, sides, {**scope, **drop}, flowing, tiles)
                write_dvalues(d_value[these], shares.mT, flow.to(value.dtype), chunk.rows, queries, single)
                del shares
            found.gather(sides, slopes, chunk, tiles, scoped.hides)
            del compared, slopes  # before the next is allocated
    return found.gradients(sides, sum_groups(torch.unflatten(d_value, 0, (batch, groups)), value))


def is_lean(sides: ScoreInputs, value: Tensor, flowing: BackwardInputs, dropped: Dropout, tiles: Tiles) -> bool:
    """True if ds may overwrite half-precision weights, a third of the memory of scores and weights.

    It needs bfloat16, since ds underflows in float16, no dropout, and no gradient of the weights.
    """
    plain = flowing.weights is None and not dropped.rate
    return plain and uses_tensor_cores(sides, tiles) and value.dtype == flowing.context.dtype == torch.bfloat16


def multiply_batches(left: Tensor, right: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Batched matrix product accumulated in float32, with a float32 output by default."""
    if left.is_cuda and left.dtype == right.dtype and left.dtype != torch.float32:
        return torch.bmm(left, right, out_dtype=dtype) if dtype != left.dtype else torch.bmm(left, right)
    return torch.bmm(left.float(), right.float()).to(dtype)


def write_dvalues(place: Tensor, shares: Tensor, flow: Tensor, rows: range, queries: int, single: Tensor | None) -> None:
    """Gradient of the values of a chunk, Aᵀ dO.

    Several chunks of the queries of one head accumulate in `single`, and the last one writes it.
    """
    if single is None and place.is_cuda:  # half precision is accumulated in float32 all the same
        torch.bmm(shares, flow, out=place)
    elif single is None:
        place.copy_(multiply_batches(shares, flow))
    else:
        found = multiply_batches(shares, flow)
        single.copy_(found if rows.start == 0 else single + found)
        if rows.stop == queries:
            place.copy_(single)


def write_dscores(
    compared: ScoreParts,
    slopes: Float[Tensor, "some_heads padded_queries padded_keys"],
    shares: Float[Tensor, "some_heads some_queries keys"],
    sides: ScoreInputs,
    told: dict[str, Any],
    flowing: BackwardInputs,
    tiles: Tiles,
) -> None:
    """Write ds = a da - a Σ a da of a chunk, possibly over its scores, and its weights after dropout into `shares`.

    `shares` holds da before, rounded to the precision of the values as in PyTorch.
    """
    _, count, tall, wide = compared.scores.shape
    given = {
        **compared.arguments(),
        **told,
        "slopes": slopes,
        "da": shares,
        "total": flowing.total,
        "given": flowing.weights,
        "GIVEN": flowing.weights is not None,
        "dropped": shares,
        "heads": sides.query.shape[1],
        "T": sides.query.shape[2],
        "S": sides.key.shape[2],
        "ROWS": tiles.slope_rows,
        "COLUMNS": min(tiles.slope_columns, next_power(wide)),
    }
    launch_cached(backward.write_dscores, (tall // tiles.slope_rows, count, 1), given, num_warps=tiles.row_warps)


def replace_weights(
    compared: ScoreParts,
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    flowing: BackwardInputs,
    tiles: Tiles,
) -> None:
    """Write ds of a chunk over its weights, after summing Σ a da over tiles of keys."""
    _, count, tall, wide = compared.scores.shape
    across, size = wide // tiles.wide, value.shape[3]
    given = {
        **compared.arguments(),
        "weights": compared.scores,
        "value": value,
        "flow": flowing.context,
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
            {**given, "SUMS": first},
            num_warps=tiles.row_warps,
        )


def run_backward_from_scores(
    sides: ScoreInputs, slopes: Float[Tensor, "batch heads queries keys"], tiles: Tiles
) -> Gradients:
    """Backward from given dScores."""
    each = split_chunks(sides, None, tiles, back=True, hides=True)
    (_, _, queries, _), keys = sides.query.shape, sides.key.shape[2]
    found = GradientSums.of(sides, len(each[0].rows) < queries, limit_workspace(sides, None, tiles, back=True))
    flat = slopes.flatten(0, 1)
    with use_device(flat):
        for chunk in each:
            these, rows = (slice(part.start, part.stop) for part in chunk)
            tall, wide = round_up(len(chunk.rows), tiles.tall), round_up(keys, tiles.wide)
            some = flat.new_zeros(len(chunk.heads), tall, wide, dtype=torch.float32)
            some[:, : len(chunk.rows), :keys] = flat[these, rows]
            found.gather(sides, some, chunk, tiles, hides=True)  # a sparse normaliser has mostly zero dScores
    return found.gradients(sides, None)


def run_step_backward(
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    context: Float[Tensor, "batch heads 1 value"],
    given: Float[Tensor, "batch heads 1 keys"] | None,
    weights: Float[Tensor, "batch heads 1 keys"],
    after: Float[Tensor, "batch heads 1 keys"],
    tiles: Tiles,
) -> Gradients:
    """Backward of one query, whose weights were saved: one pass over the keys gives dq, dk and dv."""
    groups = sides.query.shape[1]
    spread = value.repeat_interleave(groups // value.shape[1], dim=1) if groups != value.shape[1] else value
    flow = multiply_batches(context.flatten(0, 1), spread.flatten(0, 1).mT).view_as(after)
    flow = (after * flow).masked_fill(after == 0, 0.0)  # a masked value may be NaN
    flow = flow if given is None else flow + weights * given
    slopes = flow - weights * flow.sum(-1, keepdim=True)
    return trace_step(sides, value, slopes, context, after, tiles)


def trace_step(
    sides: ScoreInputs,
    value: Float[Tensor, "batch value_heads keys value"],
    slopes: Float[Tensor, "batch heads 1 keys"],
    flow: Float[Tensor, "batch heads 1 value"],
    after: Float[Tensor, "batch heads 1 keys"],
    tiles: Tiles,
) -> Gradients:
    """All gradients of one query, from dScores and the gradient of the context."""
    (batch, groups, _, hidden), (keys, size) = sides.query.shape, value.shape[2:]
    widest, blocks = max(hidden, size), parts(keys, tiles.step_columns)
    units = min(tiles.step_units, next_power(widest))
    d_key, d_value = (each.new_empty(batch, groups, keys, each.shape[3]) for each in (sides.key, value))
    steeps, falls = slopes.new_empty(2, batch * groups, blocks, hidden)
    given = {
        **heads(sides.query, sides.key, sides.v),
        "query": sides.query,
        "key": sides.key,
        "v": sides.v,
        "slopes": slopes.contiguous(),
        "after": after.contiguous(),
        "flow": flow.contiguous(),
        "d_key": d_key,
        "d_value": d_value,
        "steeps": steeps,
        "falls": falls,
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
            split_k.trace_kernel, (blocks * batch * groups, parts(widest, units), 1), given, num_warps=tiles.step_warps
        )
    d_query = steeps.sum(1).view(sides.query.shape).to(sides.query.dtype)
    return GradientSums(d_query, d_key, falls.sum(1), 0).gradients(sides, sum_groups(d_value, value))
