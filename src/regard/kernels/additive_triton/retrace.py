"""Launch the kernels of the way back: ds in chunks that stay small, then the gradients of both sides and of v."""

from typing import Any, NamedTuple

import torch
import triton
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton import backward
from regard.kernels.additive_triton.arguments import Dropped, Scoped, Sides, Tiles, assembly, heads, on

LEAST = 1 << 20
"""Scores that are always held at a time on the way back: 4 MiB, and as much for their weights."""


class Gradients(NamedTuple):
    """Of both sides, of the values where they took part, and of v."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch key_heads keys hidden"]
    value: Float[Tensor, "batch value_heads keys value"] | None
    v: Float[Tensor, "v_heads hidden"]


class Flowing(NamedTuple):
    """What the way back knows of the queries: log Σ e^s, and what flows into context and weights."""

    total: Float[Tensor, "batch heads queries"]
    context: Float[Tensor, "batch heads queries value"]
    weights: Float[Tensor, "batch heads queries keys"] | None


def many(
    sides: Sides,
    value: Float[Tensor, "batch value_heads keys value"],
    flowing: Flowing,
    scoped: Scoped,
    dropped: Dropped,
    tiles: Tiles,
) -> Gradients:
    """The gradients of many queries, a chunk of heads or of queries at a time."""
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    some_heads, some_queries = chunks(batch * groups, queries, keys, room(sides, value, tiles))
    several = some_queries < queries
    found = Sums.of(sides, tiles, several)
    d_value = value.new_zeros(batch * groups, keys, value.shape[3], dtype=torch.float32 if several else value.dtype)
    spread = value.repeat_interleave(groups // value.shape[1], dim=1).flatten(0, 1)
    flows = flowing.context.flatten(0, 1)
    compared = sides.arguments(tiles)
    for head in range(0, batch * groups, some_heads):
        these = range(head, min(head + some_heads, batch * groups))
        for first in range(0, queries, some_queries):
            rows = range(first, min(first + some_queries, queries))
            flow = flows[these.start : these.stop, rows.start : rows.stop]
            slopes = product(flow, spread[these.start : these.stop].mT)
            shares = slope(compared, scoped, dropped, flowing, slopes, rows, these, value.dtype)
            d_value[these.start : these.stop] += product(shares.mT, flow.to(value.dtype)).to(d_value.dtype)
            found.gather(sides, slopes, rows, these, tiles)
    return found.gradients(sides, _grouped(torch.unflatten(d_value, 0, (batch, groups)), value))


def chunks(heads: int, queries: int, keys: int, room: int) -> tuple[int, int]:
    """How many heads, and how many queries of each, have room for their scores: whole heads if one fits."""
    if queries * keys <= room:
        return min(heads, room // (queries * keys)), queries
    return 1, max(1, room // keys)


def room(sides: Sides, value: Tensor, tiles: Tiles) -> int:
    """Scores that need the bytes of the inputs, with a weight for each, or a few MiB where these are small."""
    inputs = sum(each.numel() * each.element_size() for each in (sides.query, sides.key, value))
    return tiles.chunk or max(LEAST, inputs // 8)


def product(left: Tensor, right: Tensor) -> Tensor:
    """A batched product that is summed, and stays, in single precision."""
    if left.is_cuda and left.dtype == right.dtype and left.dtype != torch.float32:
        return torch.bmm(left, right, out_dtype=torch.float32)
    return torch.bmm(left.float(), right.float())


def slope(
    compared: dict[str, Any],
    scoped: Scoped,
    dropped: Dropped,
    flowing: Flowing,
    slopes: Float[Tensor, "some_heads some_queries keys"],
    rows: range,
    these: range,
    dtype: torch.dtype,
) -> Float[Tensor, "some_heads some_queries keys"]:
    """Turn da into ds = a da - a Σ a da, in place, for some heads and queries; gives their weights after dropout."""
    weights, shares = torch.empty_like(slopes), torch.empty_like(slopes, dtype=dtype)
    columns, tall = triton.cdiv(slopes.shape[2], compared["COLUMNS"]), triton.cdiv(len(rows), compared["ROWS"])
    with on(shares):
        backward.slope[(columns, tall, len(these))](
            **compared,
            **scoped.arguments(),
            **dropped.arguments(),
            total=flowing.total,
            given=flowing.weights,
            GIVEN=flowing.weights is not None,
            slopes=slopes,
            weights=weights,
            dropped=shares,
            base=these.start,
            begin=rows.start,
            count=len(rows),
        )
    mean = slopes.sum(-1, keepdim=True) / weights.sum(-1, keepdim=True).clamp_min(1e-30)  # Σ a is 1, and 0 of the blind,
    slopes.addcmul_(weights, mean, value=-1)  # but for rounding, which would add what all da have in common
    return shares


class Sums(NamedTuple):
    """Gradients of every head on its own, as far as they are summed up, and the parts of that of v."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch heads keys hidden"]
    falls: list[Float[Tensor, "batch_heads hidden"]]
    several: bool

    @classmethod
    def of(cls, sides: Sides, tiles: Tiles, several: bool) -> "Sums":
        """Nothing yet. The keys' are in single precision where several chunks of queries add to them."""
        batch, groups = sides.query.shape[:2]
        dtype = torch.float32 if several else sides.key.dtype
        keys = sides.key.new_zeros(batch, groups, *sides.key.shape[2:], dtype=dtype)
        falls = sides.query.new_zeros(batch * groups, sides.query.shape[3], dtype=torch.float32)
        return cls(torch.empty_like(sides.query), keys, [falls], several)

    def gather(self, sides: Sides, slopes: Tensor, rows: range, these: range, tiles: Tiles) -> None:
        """Add what flows into the scores of some heads and queries."""
        keys = range(sides.key.shape[2])
        falls, _ = gather(sides, self.query, slopes, rows, keys, these, tiles)
        self.falls[0][these.start : these.stop] += falls
        gather(sides, self.key, slopes, rows, keys, these, tiles, by_key=True, add=self.several)

    def gradients(self, sides: Sides, value: Tensor | None) -> Gradients:
        """Of the inputs as they came: heads that share a key or a v add up."""
        falls = torch.unflatten(self.falls[0], 0, self.query.shape[:2]).sum(0)
        v = falls.sum(0, keepdim=True) if sides.v.shape[0] == 1 else falls
        return Gradients(self.query, _grouped(self.key, sides.key), value, v.to(sides.v.dtype))


def gather(
    sides: Sides,
    found: Float[Tensor, "batch heads time hidden"],
    slopes: Float[Tensor, "some_heads some_queries keys"],
    queries: range,
    keys: range,
    these: range,
    tiles: Tiles,
    by_key: bool = False,
    add: bool = False,
    alone: bool = False,
) -> tuple[Tensor, Tensor]:
    """Write the gradient of the queries, or of the keys, into `found`; Σ ds tanh too, and dq where one query is `alone`."""
    rows, columns = (keys, queries) if by_key else (queries, keys)
    count = heads(sides.query, sides.key, sides.v)
    swap = (1, 0) if by_key else (0, 1)
    data, reaches = (sides.query, sides.key), (sides.query_reach, sides.key_reach)
    many = count["heads"], count["key_heads"]
    strides = slopes.stride()[1:]
    hidden, blocks = sides.query.shape[3], triton.cdiv(len(rows), tiles.gather_rows)
    units = max(16, min(tiles.gather_units, triton.next_power_of_2(hidden)))
    falls, steeps = slopes.new_empty(2, len(these), blocks, hidden)
    wanted = alone or not by_key
    with on(found):
        backward.gather[(blocks, triton.cdiv(hidden, units), len(these))](
            rows_of=data[swap[0]],
            columns_of=data[swap[1]],
            row_reach=reaches[swap[0]],
            column_reach=reaches[swap[1]],
            v=sides.v,
            slopes=slopes,
            found=found,
            falls=falls,
            steeps=steeps,
            base=these.start,
            heads=count["heads"],
            row_heads=many[swap[0]],
            column_heads=many[swap[1]],
            v_heads=count["v_heads"],
            R=data[swap[0]].shape[2],
            C=data[swap[1]].shape[2],
            D=hidden,
            row_begin=rows.start,
            column_begin=columns.start,
            row_count=len(rows),
            column_count=len(columns),
            row_stride=strides[swap[0]],
            column_stride=strides[swap[1]],
            ROWS=tiles.gather_rows,
            COLUMNS=tiles.gather_columns,
            UNITS=units,
            ASSEMBLY=assembly(),
            ADD=add,
            FALLS=wanted,
            STEEPS=alone,
            num_warps=tiles.gather_warps,
        )
    return (falls.sum(1), steeps.sum(1)) if wanted else (falls, steeps)


def from_scores(sides: Sides, slopes: Float[Tensor, "batch heads queries keys"], tiles: Tiles) -> Gradients:
    """The gradients where what flows into every score is given."""
    found = Sums.of(sides, tiles, False)
    batch, groups, queries, _ = sides.query.shape
    found.gather(sides, slopes.float().flatten(0, 1).contiguous(), range(queries), range(batch * groups), tiles)
    return found.gradients(sides, None)


def one(
    sides: Sides,
    value: Float[Tensor, "batch value_heads keys value"],
    context: Float[Tensor, "batch heads 1 value"],
    given: Float[Tensor, "batch heads 1 keys"] | None,
    weights: Float[Tensor, "batch heads 1 keys"],
    after: Float[Tensor, "batch heads 1 keys"],
    tiles: Tiles,
) -> Gradients:
    """The gradients of one query, whose weights are still there: one pass over the keys gives all three."""
    batch, groups = sides.query.shape[:2]
    spread = value.repeat_interleave(groups // value.shape[1], dim=1)
    flow = (after * (context.float() @ spread.float().mT)).masked_fill(after == 0, 0.0)  # a hidden value may be NaN
    flow = flow if given is None else flow + weights * given
    slopes = (flow - weights * flow.sum(-1, keepdim=True)).flatten(0, 1)
    d_value = _grouped((after.mT * context).to(value.dtype), value)
    d_key = sides.key.new_empty(batch, groups, *sides.key.shape[2:])
    keys = range(sides.key.shape[2])
    falls, steeps = gather(sides, d_key, slopes, range(1), keys, range(batch * groups), tiles, by_key=True, alone=True)
    d_query = steeps.view(sides.query.shape).to(sides.query.dtype)
    return Sums(d_query, d_key, [falls], False).gradients(sides, d_value)


def _grouped(data: Float[Tensor, "batch heads time size"], like: Float[Tensor, "batch groups time size"]) -> Tensor:
    """The sum over the heads that share one."""
    groups = like.shape[1]
    if groups == data.shape[1]:
        return data.to(like.dtype)
    return torch.unflatten(data, 1, (groups, -1)).sum(2, dtype=torch.float32).to(like.dtype)
