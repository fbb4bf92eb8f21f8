"""Launch the kernels of the way there: many queries, their weights, and one query alone."""

from typing import NamedTuple

import torch
import triton
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton import forward, step
from regard.kernels.additive_triton.arguments import Dropped, Scoped, Sides, Tiles, assembly, heads, on, processors
from regard.kernels.additive_triton.chunks import chunks
from regard.kernels.additive_triton.compared import Compared, compare


class Attended(NamedTuple):
    """Context, log Σ e^s of every query, and the weights where they are wanted."""

    context: Float[Tensor, "batch heads queries value"]
    total: Float[Tensor, "batch heads queries"]
    weights: Float[Tensor, "batch heads queries keys"] | None


def attend(
    sides: Sides,
    value: Float[Tensor, "batch value_heads keys value"],
    scoped: Scoped,
    dropped: Dropped,
    dtype: torch.dtype,
    weights: torch.dtype | None,
    tiles: Tiles,
) -> Attended:
    """Scores, softmax and the sum of values, a chunk of heads or of queries at a time."""
    value = value.contiguous()
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    context = value.new_empty(batch, groups, queries, value.shape[3], dtype=dtype)
    total = value.new_empty(batch, groups, queries, dtype=torch.float32)
    shown = None if weights is None else value.new_empty(batch, groups, queries, keys, dtype=weights)
    found = Attended(context, total, shown)
    for chunk in chunks(sides, value, tiles, back=False):
        compared = compare(sides, chunk, scoped, tiles)
        read(compared, sides, value, scoped, dropped, found, tiles)
        if shown is not None:
            weigh(compared, sides, scoped, total, shown, tiles)
        del compared  # before there is room for the next
    return found


def read(
    compared: Compared,
    sides: Sides,
    value: Float[Tensor, "batch value_heads keys value"],
    scoped: Scoped,
    dropped: Dropped,
    found: Attended,
    tiles: Tiles,
) -> None:
    """Write context and log Σ e^s of a chunk."""
    size = value.shape[3]
    width = max(16, min(tiles.values, triton.next_power_of_2(size)))
    down = triton.cdiv(len(compared.chunk.rows), tiles.read_rows)
    with on(value):
        forward.read[(down, triton.cdiv(size, width), len(compared.chunk.heads))](
            **compared.arguments(),
            **scoped.arguments(),
            **dropped.arguments(),
            value=value,
            context=found.context,
            total=found.total,
            heads=sides.query.shape[1],
            value_heads=value.shape[1],
            T=sides.query.shape[2],
            S=sides.key.shape[2],
            V=size,
            ROWS=tiles.read_rows,
            COLUMNS=tiles.read_columns,
            VALUES=width,
            PRECISION=tiles.precision,
            num_warps=tiles.read_warps,
        )


def weigh(
    compared: Compared,
    sides: Sides,
    scoped: Scoped,
    total: Float[Tensor, "batch heads queries"] | None,
    weights: Float[Tensor, "batch heads queries keys"],
    tiles: Tiles,
    level: Float[Tensor, " v_heads"] | None = None,
) -> None:
    """Write the weights of a chunk, from log Σ e^s; without it the scores, with their Σ v."""
    down, across = triton.cdiv(len(compared.chunk.rows), tiles.rows), triton.cdiv(weights.shape[3], tiles.columns)
    with on(weights):
        forward.weigh[(across, down, len(compared.chunk.heads))](
            **compared.arguments(),
            **scoped.arguments(),
            total=total,
            level=level,
            weights=weights,
            heads=sides.query.shape[1],
            v_heads=sides.v.shape[0],
            T=sides.query.shape[2],
            S=sides.key.shape[2],
            ROWS=tiles.rows,
            COLUMNS=tiles.columns,
            SCORES=total is None,
            num_warps=tiles.read_warps,
        )


def score(sides: Sides, tiles: Tiles) -> Float[Tensor, "batch heads queries keys"]:
    """Σ v - 2 Σ v r of all pairs, in the precision of the query."""
    found = sides.query.new_empty(*sides.query.shape[:3], sides.key.shape[2])
    level = sides.v.float().sum(-1)
    for chunk in chunks(sides, None, tiles, back=False):
        weigh(compare(sides, chunk, Scoped(), tiles), sides, Scoped(), None, found, tiles, level)
    return found


class Stepped(NamedTuple):
    """What one query reads, and its weights before and after dropout."""

    context: Float[Tensor, "batch heads 1 value"]
    weights: Float[Tensor, "batch heads 1 keys"]
    dropped: Float[Tensor, "batch heads 1 keys"]


def one_query(
    query: Float[Tensor, "batch heads 1 hidden"],
    key: Float[Tensor, "batch key_heads keys hidden"],
    value: Float[Tensor, "batch value_heads keys value"],
    v: Float[Tensor, "v_heads hidden"],
    scoped: Scoped,
    dropped: Dropped,
    dtype: torch.dtype,
    tiles: Tiles,
) -> Stepped:
    """One query: the keys are split so that every processor has some."""
    (batch, groups, _, hidden), keys, size = query.shape, key.shape[2], value.shape[3]
    some = share(batch * groups, keys, tiles.step_columns, query.device)
    splits = triton.cdiv(keys, some)
    context = value.new_empty(batch, groups, 1, size, dtype=dtype)
    scores, weights, after = (value.new_empty(batch, groups, 1, keys, dtype=torch.float32) for _ in range(3))
    tops, masses = value.new_empty(2, batch, groups, splits, dtype=torch.float32)
    shared = {"scores": scores, "tops": tops, "masses": masses, "S": keys, "V": size, **dropped.arguments()}
    shared |= {"parts": value.new_empty(batch, groups, splits, size, dtype=torch.float32)}
    shared |= {"VALUES": triton.next_power_of_2(size), "num_warps": tiles.step_warps}
    with on(value):
        step.split[(splits, batch * groups)](
            **shared,
            **scoped.arguments(),
            **heads(query, key, v),
            query=query.contiguous(),
            key=key.contiguous(),
            value=value.contiguous(),
            v=v.contiguous(),
            value_heads=value.shape[1],
            D=hidden,
            reach=some,
            COLUMNS=tiles.step_columns,
            UNITS=min(tiles.step_units, triton.next_power_of_2(hidden)),
            ASSEMBLY=assembly(),
        )
        step.join[(batch * groups,)](
            **shared,
            context=context,
            weights=weights,
            dropped=after,
            splits=splits,
            COLUMNS=128,
            SPLITS=triton.next_power_of_2(splits),
        )
    return Stepped(context, weights, after if dropped.rate else weights)


def share(groups: int, keys: int, tile: int, device: torch.device) -> int:
    """How many keys a program takes: whole tiles, and few enough that four programs a processor have work."""
    splits = triton.cdiv(4 * processors(device), groups)
    return triton.cdiv(triton.cdiv(keys, splits), tile) * tile
