"""Launch the kernels of the way back: ds in chunks that stay small, then the gradients of both sides and of v."""

from typing import NamedTuple

import torch
import triton
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton import backward, step
from regard.kernels.additive_triton.arguments import (
    Dropped,
    Scoped,
    Sides,
    Tiles,
    assembly,
    heads,
    limit,
    on,
    padded,
    processors,
)
from regard.kernels.additive_triton.chunks import Chunk, chunks
from regard.kernels.additive_triton.compared import Compared, compare
from regard.kernels.additive_triton.powers import Powers, by_row


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
    each = chunks(sides, value, tiles, back=True)
    several = len(each[0].rows) < queries
    found = Sums.of(sides, several)
    d_value = value.new_zeros(batch * groups, keys, value.shape[3], dtype=torch.float32 if several else value.dtype)
    spread = value.repeat_interleave(groups // value.shape[1], dim=1) if groups != value.shape[1] else value
    flows, spread = flowing.context.flatten(0, 1), spread.flatten(0, 1)
    for chunk in each:
        these, rows = (slice(part.start, part.stop) for part in chunk)
        flow = flows[these, rows]
        compared = compare(sides, chunk, scoped, tiles)
        slopes, shares = slope(
            compared, product(flow, spread[these].mT), sides, scoped, dropped, flowing, value.dtype, tiles
        )
        put(d_value[these], product(shares.mT, flow.to(value.dtype)), several)
        del shares
        found.gather(sides, slopes, chunk, tiles)
        del compared, slopes  # before there is room for the next
    return found.gradients(sides, _grouped(torch.unflatten(d_value, 0, (batch, groups)), value))


def product(left: Tensor, right: Tensor) -> Tensor:
    """A batched product that is summed, and stays, in single precision."""
    if left.is_cuda and left.dtype == right.dtype and left.dtype != torch.float32:
        return torch.bmm(left, right, out_dtype=torch.float32)
    return torch.bmm(left.float(), right.float())


def put(place: Tensor, data: Tensor, several: bool) -> None:
    """Write what one chunk found, or add it to what others did."""
    if several:
        place += data
    else:
        place.copy_(data)


def slope(
    compared: Compared,
    flows: Float[Tensor, "some_heads some_queries keys"],
    sides: Sides,
    scoped: Scoped,
    dropped: Dropped,
    flowing: Flowing,
    dtype: torch.dtype,
    tiles: Tiles,
) -> tuple[Float[Tensor, "some_heads padded_queries padded_keys"], Float[Tensor, "some_heads some_queries keys"]]:
    """ds = a da - a Σ a da of a chunk, in the place of its scores, and its weights after dropout."""
    shares = torch.empty_like(flows, dtype=dtype)
    with on(shares):
        backward.slope[(compared.scores.shape[2] // tiles.slope_rows, len(compared.chunk.heads))](
            **compared.arguments(),
            **scoped.arguments(),
            **dropped.arguments(),
            da=flows,
            total=flowing.total,
            given=flowing.weights,
            GIVEN=flowing.weights is not None,
            dropped=shares,
            heads=sides.query.shape[1],
            T=sides.query.shape[2],
            S=sides.key.shape[2],
            ROWS=tiles.slope_rows,
            COLUMNS=min(tiles.slope_columns, triton.next_power_of_2(compared.scores.shape[3])),
            num_warps=tiles.read_warps,
        )
    return compared.scores[0], shares


class Sums(NamedTuple):
    """Gradients of every head on its own, as far as they are summed up, and those of v."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch heads keys hidden"]
    v: Float[Tensor, "batch_heads hidden"]
    several: bool

    @classmethod
    def of(cls, sides: Sides, several: bool) -> "Sums":
        """Nothing yet. The keys' are in single precision where several chunks of queries add to them."""
        batch, groups = sides.query.shape[:2]
        dtype = torch.float32 if several else sides.key.dtype
        keys = sides.key.new_zeros(batch, groups, *sides.key.shape[2:], dtype=dtype)
        falls = sides.query.new_zeros(batch * groups, sides.query.shape[3], dtype=torch.float32)
        return cls(torch.empty_like(sides.query), keys, falls, several)

    def gather(
        self, sides: Sides, slopes: Float[Tensor, "some_heads padded_queries padded_keys"], chunk: Chunk, tiles: Tiles
    ) -> None:
        """Add what flows into the scores of some heads and queries."""
        these, rows = (slice(part.start, part.stop) for part in chunk)
        sources, keys = sides.sources(chunk.heads), range(sides.key.shape[2])
        (tall, wide), units = slopes.shape[1:], width(sides, tiles)
        high = padded(sides.query.shape[3], units)
        left = by_row(sides.query, chunk.heads, chunk.rows, tall, high, units)
        right = by_row(sides.key, sources, keys, wide, high, units)
        query = Side(sides.query, left, chunk.heads.start, chunk.rows, wide)
        key = Side(sides.key, right, sources.start, keys, 1)
        falls = gather(sides, query, key, self.query.flatten(0, 1)[these, rows], slopes, chunk.heads.start, tiles, v=True)
        self.v[these] += falls
        gather(sides, key, query, self.key.flatten(0, 1)[these], slopes, chunk.heads.start, tiles, add=self.several)

    def gradients(self, sides: Sides, value: Tensor | None) -> Gradients:
        """Of the inputs as they came: heads that share a key or a v add up."""
        falls = torch.unflatten(self.v, 0, self.query.shape[:2]).sum(0)
        v = falls.sum(0, keepdim=True) if sides.v.shape[0] == 1 else falls
        return Gradients(self.query, _grouped(self.key, sides.key), value, v.to(sides.v.dtype))


class Side(NamedTuple):
    """Queries or keys of a chunk, as one of the two axes of ds."""

    data: Float[Tensor, "batch heads time hidden"]
    powers: Powers
    base: int
    """The head, counted through the batch, with which the exponentials begin."""
    places: range
    stride: int
    """Along this axis of ds."""


def width(sides: Sides, tiles: Tiles) -> int:
    """Hidden units of a tile on the way back."""
    return max(16, min(tiles.gather_units, triton.next_power_of_2(sides.query.shape[3])))


def gather(
    sides: Sides,
    rows: Side,
    columns: Side,
    found: Float[Tensor, "some_heads some_rows hidden"],
    slopes: Float[Tensor, "some_heads padded_queries padded_keys"],
    base: int,
    tiles: Tiles,
    v: bool = False,
    add: bool = False,
) -> Tensor:
    """Write the gradient of the rows into `found`, or add it; with `v` Σ ds tanh comes back."""
    many, hidden, (_, panels, tall, units) = len(slopes), sides.query.shape[3], rows.powers.data.shape
    blocks, across = tall // tiles.gather_rows, columns.powers.data.shape[2]
    parts, reach = shared(blocks * panels * many, across, tiles, slopes.device)
    direct = parts == 1 and not add
    place = found if direct else slopes.new_empty(parts, many, len(rows.places), hidden)
    falls = slopes.new_empty(many, parts * blocks if v else 0, hidden)
    with on(found):
        backward.gather[(blocks, panels, many * parts)](
            rows_of=rows.data,
            columns_of=columns.data,
            left=rows.powers.data,
            right=columns.powers.data,
            row_reach=rows.powers.reach,
            column_reach=columns.powers.reach,
            v=sides.v,
            slopes=slopes,
            found=place,
            falls=falls,
            base=base,
            row_base=rows.base,
            column_base=columns.base,
            heads=sides.query.shape[1],
            row_heads=rows.data.shape[1],
            column_heads=columns.data.shape[1],
            v_heads=sides.v.shape[0],
            R=rows.data.shape[2],
            C=columns.data.shape[2],
            D=hidden,
            row_begin=rows.places.start,
            column_begin=columns.places.start,
            row_count=len(rows.places),
            column_count=len(columns.places),
            row_pad=tall,
            column_pad=across,
            high=panels * units,
            reach=reach,
            part_stride=0 if direct else place.stride(0),
            head_stride=place.stride(-3),
            row_stride=rows.stride,
            column_stride=columns.stride,
            ROWS=tiles.gather_rows,
            COLUMNS=tiles.gather_columns,
            UNITS=units,
            PAIRS=tiles.gather_pairs,
            PARTS=parts,
            ASSEMBLY=assembly(),
            FALLS=v,
            num_warps=tiles.gather_warps,
            **limit(tiles),
        )
    if not direct:
        put(found, place[0] if parts == 1 else place.sum(0), add)
    return falls.sum(1)


def shared(programs: int, columns: int, tiles: Tiles, device: torch.device) -> tuple[int, int]:
    """Among how many programs the columns of a tile are spread, so that a processor has four, and how many each takes."""
    parts = max(1, min(columns // tiles.gather_columns, 4 * processors(device) // programs, 8))
    reach = padded(triton.cdiv(columns, parts), tiles.gather_columns)
    return triton.cdiv(columns, reach), reach


def from_scores(sides: Sides, slopes: Float[Tensor, "batch heads queries keys"], tiles: Tiles) -> Gradients:
    """The gradients where what flows into every score is given."""
    each = chunks(sides, None, tiles, back=True)
    (_, _, queries, _), keys = sides.query.shape, sides.key.shape[2]
    found = Sums.of(sides, len(each[0].rows) < queries)
    flat = slopes.flatten(0, 1)
    for chunk in each:
        these, rows = (slice(part.start, part.stop) for part in chunk)
        tall, wide = padded(len(chunk.rows), tiles.tall), padded(keys, tiles.wide)
        some = flat.new_zeros(len(chunk.heads), tall, wide, dtype=torch.float32)
        some[:, : len(chunk.rows), :keys] = flat[these, rows]
        found.gather(sides, some, chunk, tiles)
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
    groups = sides.query.shape[1]
    spread = value.repeat_interleave(groups // value.shape[1], dim=1)
    flow = (after * (context.float() @ spread.float().mT)).masked_fill(after == 0, 0.0)  # a hidden value may be NaN
    flow = flow if given is None else flow + weights * given
    slopes = (flow - weights * flow.sum(-1, keepdim=True)).flatten(0, 1)
    d_value = _grouped((after.mT * context).to(value.dtype), value)
    return trace(sides, slopes.contiguous(), d_value, tiles)


def trace(sides: Sides, slopes: Float[Tensor, "batch_heads 1 keys"], d_value: Tensor, tiles: Tiles) -> Gradients:
    """The gradients of both sides and of v, from what flows into the scores of one query."""
    (batch, groups, _, hidden), keys = sides.query.shape, sides.key.shape[2]
    units = min(tiles.step_units, triton.next_power_of_2(hidden))
    blocks = triton.cdiv(keys, tiles.step_columns)
    d_key = sides.key.new_empty(batch, groups, keys, hidden)
    steeps, falls = slopes.new_empty(2, batch * groups, blocks, hidden)
    with on(d_key):
        step.trace[(blocks, triton.cdiv(hidden, units), batch * groups)](
            query=sides.query,
            key=sides.key,
            v=sides.v,
            slopes=slopes,
            d_key=d_key,
            steeps=steeps,
            falls=falls,
            **heads(sides.query, sides.key, sides.v),
            S=keys,
            D=hidden,
            COLUMNS=tiles.step_columns,
            UNITS=units,
            ASSEMBLY=assembly(),
            num_warps=tiles.step_warps,
        )
    d_query = steeps.sum(1).view(sides.query.shape).to(sides.query.dtype)
    return Sums(d_query, d_key, falls.sum(1), False).gradients(sides, d_value)


def _grouped(data: Float[Tensor, "batch heads time size"], like: Float[Tensor, "batch groups time size"]) -> Tensor:
    """The sum over the heads that share one."""
    groups = like.shape[1]
    if groups == data.shape[1]:
        return data.to(like.dtype)
    return torch.unflatten(data, 1, (groups, -1)).sum(2, dtype=torch.float32).to(like.dtype)
