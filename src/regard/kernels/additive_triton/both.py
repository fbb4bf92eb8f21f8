"""The gradients of queries, keys and v in one pass over what flows into the scores.

    h = r - 1/2 = -tanh / 2,    dq = 4 v Σ_k ds (1/4 - h²),    dk = 4 v Σ_q ds (1/4 - h²),    dv = -2 Σ ds h

`gather` finds dq and dk apart, and every reciprocal twice. Here a program has a few hidden units and a tile of keys, whose
exponentials and sums stay in registers, and goes through the queries; two keys share a reciprocal. A thread has keys of one
unit: what it adds up for dk is its own, and for dq a few threads of its warp have the rest. Neither side is raised
beforehand, and nothing is rounded on the way. Where the keys are several tiles, each leaves its own part of dq, and where
the queries are dealt to several programs, each leaves one of dk: nothing is added in an order that changes.
"""

from typing import NamedTuple, no_type_check

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton.arguments import Sides, Tiles, assembly, heads, limit, padded, parts, processors
from regard.kernels.additive_triton.backward import number
from regard.kernels.additive_triton.chunks import Chunk, beside
from regard.kernels.additive_triton.rational import REACH, exponential, plain, reciprocal
from regard.kernels.additive_triton.visible import some
from regard.kernels.gpu.started import start

WARP = 32
LANES = 1, 2, 4, 8, 16, WARP
"""Among how many threads the keys of one unit may be dealt: those of a warp at most."""
HIDING = 128
"""Keys of a tile at most where some are hidden: what nobody sees is passed over by whole tiles."""
PLACES = 1 << 31
"""Numbers of the keys of a head, which are counted in 32 bits."""


class Plan(NamedTuple):
    """How a pass is dealt: among how many threads the keys of a tile are, how many tiles, and how queries are shared."""

    across: int
    tiles: int
    shared: int
    """How many programs share the queries of a head, which have `reach` of them each."""
    reach: int


def plan(
    sides: Sides, slopes: Float[Tensor, "some_heads padded_queries padded_keys"], tiles: Tiles, hides: bool, room: int
) -> Plan | None:
    """None where such a pass is not wanted, or the keys are more tiles than may leave parts of dq.

    The tiles that have the fewest places beyond the keys, and of these the fewest. Queries are shared until every processor
    has two programs, as long as there is room for what they leave.
    """
    (many, tall, wide), (keys, hidden) = slopes.shape, sides.key.shape[2:]
    if not tiles.both:
        return None
    most = max(1, HIDING // tiles.both) if hides else WARP
    able = [lanes for lanes in LANES if lanes <= most and parts(wide, lanes * tiles.both) <= tiles.both_parts]
    if not able or keys * hidden >= PLACES:
        return None
    across = min(able, key=lambda lanes: (padded(wide, lanes * tiles.both), -lanes))
    count = parts(wide, across * tiles.both)
    programs = many * count * parts(hidden, units(across, tiles))
    left = room - (4 * count * many * sides.query.shape[2] * hidden if count > 1 else 0)
    fits = beside([slopes], many * keys * hidden, left)
    several = max(1, min(2 * processors(slopes.device) // programs, parts(tall, tiles.both_rows), tiles.both_parts, fits))
    reach = padded(parts(tall, several), tiles.both_rows)
    return Plan(across, count, parts(tall, reach), reach)


def units(across: int, tiles: Tiles) -> int:
    """Hidden units of a program whose threads deal the keys of a tile among so many."""
    return tiles.both_warps * WARP // across


class Found(NamedTuple):
    """Where the gradients of a chunk go, or parts of them in single precision, which add up."""

    query: Float[Tensor, "tiles some_heads some_queries hidden"]
    key: Float[Tensor, "shared some_heads keys hidden"]
    v: Float[Tensor, "programs some_heads hidden"]


def both(
    sides: Sides,
    slopes: Float[Tensor, "some_heads padded_queries padded_keys"],
    chunk: Chunk,
    found: Found,
    dealt: Plan,
    tiles: Tiles,
    hides: bool,
) -> None:
    """Write all gradients of a chunk; `hides` says that whole tiles may have nothing."""
    (many, tall, wide), hidden, wanted = slopes.shape, sides.query.shape[3], units(dealt.across, tiles)
    given = {
        **heads(sides.query, sides.key, sides.v),
        "query": sides.query,
        "key": sides.key,
        "v": sides.v,
        "slopes": slopes,
        "to_query": found.query,
        "to_key": found.key,
        "to_v": found.v,
        "base": chunk.heads.start,
        "T": sides.query.shape[2],
        "S": sides.key.shape[2],
        "D": hidden,
        "begin": chunk.rows.start,
        "count": len(chunk.rows),
        "tall": tall,
        "wide": wide,
        "tiles": dealt.tiles,
        "reach": dealt.reach,
        "one": 1,
        "query_part": found.query.stride(0),
        "query_head": found.query.stride(1),
        "key_part": found.key.stride(0),
        "key_head": found.key.stride(1),
        "v_part": found.v.stride(0),
        "ROWS": tiles.both_rows,
        "EACH": tiles.both // VECTOR,
        "ACROSS": dealt.across,
        "UNITS": wanted,
        "WHOLE": wide % (dealt.across * tiles.both) == 0,
        "ASSEMBLY": assembly(),
        "HIDDEN": hides,
    }
    grid = parts(hidden, wanted), dealt.tiles * dealt.shared, many
    start(descend, grid, given, num_warps=tiles.both_warps, **limit(tiles.both_registers))


VECTOR = 4
"""Keys beside each other that a thread has: what flows into them is loaded at once, and two and two share a reciprocal."""


@triton.jit(do_not_specialize=["base", "T", "S", "begin", "count", "tiles", "reach", "one"])
@no_type_check
def descend(
    query, key, v, slopes, to_query, to_key, to_v,
    base, heads, key_heads, v_heads, T, S, D, begin, count, tall, wide, tiles, reach, one,
    query_part, query_head, key_part, key_head, v_part,
    ROWS: tl.constexpr, EACH: tl.constexpr, ACROSS: tl.constexpr, UNITS: tl.constexpr,
    WHOLE: tl.constexpr, ASSEMBLY: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """4 v Σ ds (1/4 - h²) over the keys of a tile and over `reach` queries, and -2 Σ ds h over both, of UNITS hidden units.

    A tile is four, of every fourth key, with axes (ACROSS, UNITS, EACH), of which Triton deals the first two among threads.
    `one` is 1, which the compiler is not to know: where it sees that the units of a key are beside each other it would deal
    them in another way, and pass all through shared memory at every query. Where nobody looks ds is 0, and NaN of either
    side counts as 0.
    """
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    part, tile = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    first = tile * (4 * EACH * ACROSS)
    lanes, units = tl.arange(0, ACROSS), tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    inside = units < D
    columns = first + 4 * (tl.arange(0, EACH)[None, None, :] * ACROSS + lanes[:, None, None])
    columns = tl.broadcast_to(columns, (ACROSS, UNITS, EACH))
    quads = columns[:, :, :, None] + tl.arange(0, 4)[None, None, None, :]
    left = S - tl.where(inside[None, :, None], columns, S)  # how many keys there are from here on
    cells = columns * D + (units * one)[None, :, None]
    key += (b * key_heads + h * key_heads // heads) * S * D
    k0, k1, k2, k3 = keyed(key, cells, left, D)
    far = tl.maximum(tl.maximum(tl.abs(k0), tl.abs(k1)), tl.maximum(tl.abs(k2), tl.abs(k3)))
    far = tl.max(tl.max(tl.max(far, axis=2), axis=1), axis=0)
    power0, power1, power2, power3 = raised(k0), raised(k1), raised(k2), raised(k3)
    query += (head * T + begin) * D
    slopes += local * tall * wide
    to_query += tile.to(tl.int64) * query_part + local * query_head
    w = 4.0 * tl.load(v + h * v_heads // heads * D + units, mask=inside, other=0.0).to(tl.float32)
    written = (lanes == 0)[:, None] & inside[None, :]
    fall = tl.zeros((ACROSS, UNITS, EACH), tl.float32)
    steep0, steep1, steep2, steep3 = fall, fall, fall, fall
    for begun in range(part * reach, tl.minimum(part * reach + reach, count), ROWS):
        rows = begun + tl.arange(0, ROWS)
        asking = (rows < count)[:, None] & inside[None, :]
        block = rows.to(tl.int64)[:, None] * D + units[None, :]
        wild = far + tl.max(tl.max(tl.abs(number(query + block, asking)), axis=1), axis=0) > REACH
        met = True
        if HIDDEN:
            tops = first + tl.arange(0, 4 * EACH * ACROSS)
            shown = tl.load(slopes + rows[:, None] * wide + tops[None, :], mask=(tops < wide)[None, :], other=0.0)
            met = some(shown != 0.0)
        if met:
            before, end = tl.cast(begun, tl.int64) * D, tl.minimum(begun + ROWS, count)
            asks, flows = query + before + units, slopes + begun * wide
            puts = to_query + before + (units * one)[None, :] + tl.zeros((ACROSS, 1), tl.int32)
            if wild:
                for _ in range(begun, end):
                    ds0, ds1, ds2, ds3 = flowing(flows, quads, wide, WHOLE)
                    q = number(asks, inside)[None, :, None]
                    k0, k1, k2, k3 = keyed(key, cells, left, D)  # again: no register holds them
                    h0, h1 = plain(q + k0, ASSEMBLY) - 0.5, plain(q + k1, ASSEMBLY) - 0.5
                    h2, h3 = plain(q + k2, ASSEMBLY) - 0.5, plain(q + k3, ASSEMBLY) - 0.5
                    steep0, steep1, fall, some_left = passed(ds0, ds1, h0, h1, steep0, steep1, fall, 0.0)
                    steep2, steep3, fall, all_left = passed(ds2, ds3, h2, h3, steep2, steep3, fall, some_left)
                    leave(puts, written, w, all_left, UNITS, ACROSS)
                    asks += D
                    puts += D
                    flows += wide
            else:
                for _ in range(begun, end):
                    ds0, ds1, ds2, ds3 = flowing(flows, quads, wide, WHOLE)
                    q = exponential(number(asks, inside))[None, :, None]
                    h0, h1 = bent(q, power0, power1, ASSEMBLY)
                    h2, h3 = bent(q, power2, power3, ASSEMBLY)
                    steep0, steep1, fall, some_left = passed(ds0, ds1, h0, h1, steep0, steep1, fall, 0.0)
                    steep2, steep3, fall, all_left = passed(ds2, ds3, h2, h3, steep2, steep3, fall, some_left)
                    leave(puts, written, w, all_left, UNITS, ACROSS)
                    asks += D
                    puts += D
                    flows += wide
        else:
            tl.store(to_query + block, tl.zeros((ROWS, UNITS), to_query.dtype.element_ty), mask=asking)
    to_key += part.to(tl.int64) * key_part + local * key_head
    w3 = w[None, :, None]
    tl.store(to_key + cells, (w3 * steep0).to(to_key.dtype.element_ty), mask=left > 0)
    tl.store(to_key + D + cells, (w3 * steep1).to(to_key.dtype.element_ty), mask=left > 1)
    tl.store(to_key + 2 * D + cells, (w3 * steep2).to(to_key.dtype.element_ty), mask=left > 2)
    tl.store(to_key + 3 * D + cells, (w3 * steep3).to(to_key.dtype.element_ty), mask=left > 3)
    fallen = -2.0 * tl.sum(tl.sum(fall, axis=2), axis=0)
    tl.store(to_v + tl.program_id(1).to(tl.int64) * v_part + local * D + units, fallen, mask=inside)


@triton.jit
@no_type_check
def keyed(key, cells, left, D):
    """Four keys beside each other, those of them that are there."""
    k0, k1 = number(key + cells, left > 0), number(key + D + cells, left > 1)
    k2, k3 = number(key + 2 * D + cells, left > 2), number(key + 3 * D + cells, left > 3)
    return k0, k1, k2, k3


@triton.jit
@no_type_check
def raised(x):
    """e^{2x}; where it would be too large nobody reads it."""
    return exponential(tl.where(tl.abs(x) > 40.0, 0.0, x))


@triton.jit
@no_type_check
def flowing(slopes, quads, wide, WHOLE: tl.constexpr):
    """ds of one query and of four keys beside each other, the same for all units: each thread has those of its keys."""
    found = tl.load(slopes + quads) if WHOLE else tl.load(slopes + quads, mask=quads < wide, other=0.0)
    ACROSS: tl.constexpr = found.shape[0]
    UNITS: tl.constexpr = found.shape[1]
    EACH: tl.constexpr = found.shape[2]
    even, odd = tl.split(tl.reshape(found.to(tl.float32), (ACROSS, UNITS, EACH, 2, 2)))
    ds0, ds2 = tl.split(even)
    ds1, ds3 = tl.split(odd)
    return ds0, ds1, ds2, ds3


@triton.jit
@no_type_check
def bent(q, first, second, ASSEMBLY: tl.constexpr):
    """h of one query and two keys, by one reciprocal."""
    x, y = tl.fma(q, first, 1.0), tl.fma(q, second, 1.0)
    shared = reciprocal(x * y, ASSEMBLY)
    return tl.fma(shared, y, -0.5), tl.fma(shared, x, -0.5)


@triton.jit
@no_type_check
def passed(ds1, ds2, h1, h2, steep1, steep2, fall, left):
    """What two keys add to their own sums, to that of v and to that of the query."""
    fall = tl.fma(ds2, h2, tl.fma(ds1, h1, fall))
    slope1, slope2 = 0.25 - h1 * h1, 0.25 - h2 * h2
    return tl.fma(ds1, slope1, steep1), tl.fma(ds2, slope2, steep2), fall, tl.fma(ds2, slope2, tl.fma(ds1, slope1, left))


@triton.jit
@no_type_check
def leave(place, written, w, left, UNITS: tl.constexpr, ACROSS: tl.constexpr):
    """Write what leaves for one query, of all keys of a tile: the threads that share a unit all have it, and one writes."""
    found = w * tl.sum(tl.sum(left, axis=2), axis=0)
    tl.store(place, tl.broadcast_to(found[None, :], (ACROSS, UNITS)).to(place.dtype.element_ty), mask=written)
