"""The gradients of queries, keys and v in one pass over what flows into the scores.

    h = r - 1/2 = -tanh / 2,    dq = 4 v Σ_k ds (1/4 - h²),    dk = 4 v Σ_q ds (1/4 - h²),    dv = -2 Σ ds h

`gather` finds dq and dk apart, and every reciprocal twice. Here a program has a few hidden units and a tile of keys, whose
exponentials and sums stay in registers, and goes through the queries; two keys share a reciprocal. A thread has keys of one
unit or two: what it adds up for dk is its own, and for dq a few threads of its warp have the rest. Neither side is raised
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
    return tiles.both_sets * tiles.both_warps * WARP // across


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
        "UNITS": wanted // tiles.both_sets,
        "SETS": tiles.both_sets,
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
    ROWS: tl.constexpr, EACH: tl.constexpr, ACROSS: tl.constexpr, UNITS: tl.constexpr, SETS: tl.constexpr,
    WHOLE: tl.constexpr, ASSEMBLY: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """4 v Σ ds (1/4 - h²) over the keys of a tile and over `reach` queries, and -2 Σ ds h over both, of some hidden units.

    These are SETS of UNITS. For each there are four tiles, of every fourth key, with axes (ACROSS, UNITS, EACH), of which
    Triton deals the first two among threads. `one` is 1, which the compiler is not to know: where it sees that the units of
    a key are beside each other it would deal them in another way, and pass all through shared memory at every query. Where
    nobody looks ds is 0, and NaN of either side counts as 0.
    """
    local = tl.program_id(2).to(tl.int64)
    head = base + local
    b, h = head // heads, head % heads
    part, tile = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    first, panel = tile * (4 * EACH * ACROSS), tl.program_id(0) * (SETS * UNITS)
    lanes, units = tl.arange(0, ACROSS), panel + tl.arange(0, UNITS)
    columns = first + 4 * (tl.arange(0, EACH)[None, None, :] * ACROSS + lanes[:, None, None])
    columns = tl.broadcast_to(columns, (ACROSS, UNITS, EACH))
    quads = columns[:, :, :, None] + tl.arange(0, 4)[None, None, None, :]
    cells = columns * D + (units * one)[None, :, None]
    key += (b * key_heads + h * key_heads // heads) * S * D
    far, powers = tl.zeros((ACROSS, UNITS, EACH), tl.float32), ()
    for each in tl.static_range(4 * SETS):
        k = keyed(key, cells, columns, units, each, S, D, UNITS)
        far = tl.maximum(far, tl.abs(k))
        powers = powers + (raised(k),)  # noqa: RUF005 (Triton knows no unpacking)
    far = tl.max(tl.max(tl.max(far, axis=2), axis=1), axis=0)
    query += (head * T + begin) * D
    slopes += local * tall * wide
    to_query += tile.to(tl.int64) * query_part + local * query_head
    v += h * v_heads // heads * D + units
    w, steep, fall = (), (), ()
    for each in tl.static_range(SETS):
        one_set = 4.0 * tl.load(v + each * UNITS, mask=units + each * UNITS < D, other=0.0).to(tl.float32)
        nothing = tl.zeros((ACROSS, UNITS, EACH), tl.float32)
        w = w + (one_set,)  # noqa: RUF005
        steep = steep + (nothing, nothing, nothing, nothing)  # noqa: RUF005
        fall = fall + (nothing,)  # noqa: RUF005
    for begun in range(part * reach, tl.minimum(part * reach + reach, count), ROWS):
        rows, all_units = begun + tl.arange(0, ROWS), panel + tl.arange(0, SETS * UNITS)
        asking = (rows < count)[:, None] & (all_units < D)[None, :]
        block = rows.to(tl.int64)[:, None] * D + all_units[None, :]
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
                    steep, fall = asked(
                        asks, flows, puts, w, key, cells, columns, quads, units, lanes, powers, steep, fall, S, D, wide,
                        UNITS, ACROSS, SETS, WHOLE, ASSEMBLY, True,
                    )  # fmt: skip
                    asks += D
                    puts += D
                    flows += wide
            else:
                for _ in range(begun, end):
                    steep, fall = asked(
                        asks, flows, puts, w, key, cells, columns, quads, units, lanes, powers, steep, fall, S, D, wide,
                        UNITS, ACROSS, SETS, WHOLE, ASSEMBLY, False,
                    )  # fmt: skip
                    asks += D
                    puts += D
                    flows += wide
        else:
            tl.store(to_query + block, tl.zeros((ROWS, SETS * UNITS), to_query.dtype.element_ty), mask=asking)
    to_key += part.to(tl.int64) * key_part + local * key_head
    to_v += tl.program_id(1).to(tl.int64) * v_part + local * D
    for each in tl.static_range(4 * SETS):
        there = (columns + each % 4 < S) & (units + each // 4 * UNITS < D)[None, :, None]
        place = to_key + each // 4 * UNITS + each % 4 * D + cells
        tl.store(place, (w[each // 4][None, :, None] * steep[each]).to(to_key.dtype.element_ty), mask=there)
    for each in tl.static_range(SETS):
        fallen = -2.0 * tl.sum(tl.sum(fall[each], axis=2), axis=0)
        tl.store(to_v + units + each * UNITS, fallen, mask=units + each * UNITS < D)


@triton.jit
@no_type_check
def asked(
    asks, flows, puts, w, key, cells, columns, quads, units, lanes, powers, steep, fall, S, D, wide,
    UNITS: tl.constexpr, ACROSS: tl.constexpr, SETS: tl.constexpr, WHOLE: tl.constexpr, ASSEMBLY: tl.constexpr,
    WILD: tl.constexpr,
):  # fmt: skip
    """The sums of all keys and of v with those of one query, and what leaves for it written. WILD ones take the keys as they
    are, which no register holds."""
    ds = flowing(flows, quads, wide, WHOLE)
    grown, fallen = (), ()
    for each in tl.static_range(SETS):
        q = number(asks + each * UNITS, units + each * UNITS < D)
        if WILD:
            q = q[None, :, None]
            h0 = plain(q + keyed(key, cells, columns, units, 4 * each, S, D, UNITS), ASSEMBLY) - 0.5
            h1 = plain(q + keyed(key, cells, columns, units, 4 * each + 1, S, D, UNITS), ASSEMBLY) - 0.5
            h2 = plain(q + keyed(key, cells, columns, units, 4 * each + 2, S, D, UNITS), ASSEMBLY) - 0.5
            h3 = plain(q + keyed(key, cells, columns, units, 4 * each + 3, S, D, UNITS), ASSEMBLY) - 0.5
        else:
            q = exponential(q)[None, :, None]
            h0, h1 = bent(q, powers[4 * each], powers[4 * each + 1], ASSEMBLY)
            h2, h3 = bent(q, powers[4 * each + 2], powers[4 * each + 3], ASSEMBLY)
        steep0, steep1, fell, left = passed(ds[0], ds[1], h0, h1, steep[4 * each], steep[4 * each + 1], fall[each], 0.0)
        steep2, steep3, fell, left = passed(ds[2], ds[3], h2, h3, steep[4 * each + 2], steep[4 * each + 3], fell, left)
        leave(puts + each * UNITS, w[each], left, units + each * UNITS, lanes, D, UNITS, ACROSS)
        grown = grown + (steep0, steep1, steep2, steep3)  # noqa: RUF005
        fallen = fallen + (fell,)  # noqa: RUF005
    return grown, fallen


@triton.jit
@no_type_check
def keyed(key, cells, columns, units, each: tl.constexpr, S, D, UNITS: tl.constexpr):
    """One of the four tiles of keys of a set, those of them that are there."""
    there = (columns + each % 4 < S) & (units + each // 4 * UNITS < D)[None, :, None]
    return number(key + each // 4 * UNITS + each % 4 * D + cells, there)


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
def leave(place, w, left, units, lanes, D, UNITS: tl.constexpr, ACROSS: tl.constexpr):
    """Write what leaves for one query, of all keys of a tile: the threads that share a unit all have it, and one writes."""
    found = w * tl.sum(tl.sum(left, axis=2), axis=0)
    written = (lanes == 0)[:, None] & (units < D)[None, :]
    tl.store(place, tl.broadcast_to(found[None, :], (ACROSS, UNITS)).to(place.dtype.element_ty), mask=written)
