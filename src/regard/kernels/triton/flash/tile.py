"""What every program does with one tile of queries by keys: load its rows, see what is allowed, and score it.

Scores are in units of log 2 throughout, so that exp2 gives the weights; `LOG2E` takes nats there.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash import launch_window_sort
from regard.kernels.triton.flash.window_sort import stretch_of

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
FAR, WHOLE = tl.constexpr(launch_window_sort.FAR), tl.constexpr(launch_window_sort.WHOLE)


@triton.jit
@no_type_check
def rows(view, b, h, at, there, size, BLOCK: tl.constexpr):
    """The rows `at` of one head, zeros where nothing is there: what stands behind the end or is hidden is never read.

    `there` is None where all of them are.
    """
    column = tl.arange(0, BLOCK)
    base = view[0] + b.to(tl.int64) * view[1] + h.to(tl.int64) * view[2]
    place = base + at.to(tl.int64)[:, None] * view[3] + column[None, :]
    real = (column < size)[None, :]
    if there is not None:
        real = real & there[:, None]
    return tl.load(place, mask=real, other=0.0)


@triton.jit
@no_type_check
def tiled(view, b, h, start, size, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The rows of one head from `start` on, all of which are there.

    How far they stand behind the first is the same for every tile, and takes half of the registers that addresses do.
    """
    row, column = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    base = view[0] + b.to(tl.int64) * view[1] + h.to(tl.int64) * view[2] + tl.cast(start, tl.int64) * view[3]
    return tl.load(base + (row[:, None] * view[3] + column[None, :]), mask=(column < size)[None, :], other=0.0)


@triton.jit
@no_type_check
def write(view, b, h, at, there, size, data, BLOCK: tl.constexpr):
    """Put rows where `rows` would find them."""
    column = tl.arange(0, BLOCK)
    base = view[0] + b.to(tl.int64) * view[1] + h.to(tl.int64) * view[2]
    place = base + at.to(tl.int64)[:, None] * view[3] + column[None, :]
    real = (column < size)[None, :]
    if there is not None:
        real = real & there[:, None]
    tl.store(place, data.to(view[0].dtype.element_ty), mask=real)


@triton.jit
@no_type_check
def position(offset, offsets, b):
    """Where the first query of a row stands."""
    first = offset
    if offsets is not None:
        first = tl.load(offsets + b).to(tl.int32)
    return first


@triton.jit
@no_type_check
def asking(place, centres, b, queries):
    """The queries at these places: those of that number or, where they place their windows, those whose window is."""
    q = place
    if centres is not None:
        q = tl.load(centres[1] + b.to(tl.int64) * queries + place, mask=place < queries, other=queries)
    return q


@triton.jit
@no_type_check
def padded(queries):
    """How many places rows of queries in an order have; see `ordered.padded`."""
    return (queries + WHOLE - 1) // WHOLE * WHOLE


@triton.jit
@no_type_check
def standing(place, centres, b, queries):
    """Where the windows at these places stand, in their order; behind the end, where no key is."""
    return tl.load(centres[0] + b.to(tl.int64) * padded(queries) + place, mask=place < queries, other=-FAR)


@triton.jit
@no_type_check
def apart_by(k0, there, centre, N: tl.constexpr):
    """How far N keys from k0 on are from the centres; too far for any window where there is no key or no query.

    `there` is None where all keys are.
    """
    stands = k0 * 1.0 + tl.arange(0, N).to(tl.float32)  # the second is found once for all tiles
    if there is not None:
        stands = tl.where(there, stands, FAR)
    return stands[None, :] - centre[:, None]


@triton.jit
@no_type_check
def whole_tiles(low, high, keys, N: tl.constexpr):
    """From which key on whole tiles reach from `low` to `high` and not beyond the last key, where keys fill such tiles."""
    return tl.minimum(low, keys - (high - low + N - 1) // N * N)


@triton.jit
@no_type_check
def kept_keys(keep, b, k, keys):
    """The keys of a tile that are there at all."""
    there = k < keys
    if keep is not None:
        there &= tl.load(keep[0] + b.to(tl.int64) * keep[1] + k, mask=there, other=0) != 0
    return there


@triton.jit
@no_type_check
def allowed(b, h, q, k, first, there, mask, away, queries, window, width, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr):
    """Which of these queries may see which of these keys; `there` are the keys that are there at all.

    Where windows are placed, `away` says both.
    """
    seen = tl.abs(away) <= width if away is not None else (q < queries)[:, None] & there[None, :]
    far = k[None, :] - (q + first)[:, None]
    if CAUSAL:
        seen &= far <= 0
    if WINDOWED:
        seen &= (far <= window) & (far >= -window)
    if mask is not None:
        base = mask[0] + b.to(tl.int64) * mask[1] + h.to(tl.int64) * mask[2]
        seen &= tl.load(base + q.to(tl.int64)[:, None] * mask[3] + k[None, :], mask=seen, other=0) != 0
    return seen


@triton.jit
@no_type_check
def scored(asked, found, bias, b, h, q, k, seen, away, queries, scale, fall, BELL: tl.constexpr, PRECISION: tl.constexpr):
    """The scores of a tile, minus infinity where a key may not be seen; `seen` is None where all may be.

    A bias has one number for each distance k - q. `fall` is what a Gaussian's exponent has for each squared step away.
    """
    scores = tl.dot(asked, tl.trans(found), input_precision=PRECISION).to(tl.float32) * (scale * LOG2E)
    if bias is not None:
        base = bias[0] + b.to(tl.int64) * bias[1] + h.to(tl.int64) * bias[2]
        scores += LOG2E * tl.load(base + (k[None, :] - q[:, None] + queries - 1), mask=seen, other=0.0)
    if BELL == 2:  # a Gaussian whose weights add up to one again is one more term of the scores
        scores += fall * away * away
    if seen is not None:
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@triton.jit
@no_type_check
def falling(width):
    """exp(-2 (k - p)² / width²) is exp2 of this times (k - p)²."""
    return (-2 * LOG2E) / (width * width)


@triton.jit
@no_type_check
def surviving(seed, number, q, k, queries, keys, dropout):
    """1 / (1 - dropout) for weights that are kept, 0 for those that are dropped: the same in every pass."""
    place = (number.to(tl.int64) * queries + q.to(tl.int64)[:, None]) * keys + k.to(tl.int64)[None, :]
    return tl.where(tl.rand(tl.load(seed), place) >= dropout, 1 / (1 - dropout), 0.0)


@triton.jit
@no_type_check
def keys_for(
    q0,
    first,
    keys,
    window,
    centre,
    inside,
    width,
    M: tl.constexpr,
    N: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
):
    """From which key to which the queries of a tile look at most."""
    low = 0
    high = keys
    if CAUSAL and centre is None:  # else queries need not follow each other
        high = tl.minimum(high, q0 + M + first)
    if WINDOWED and centre is None:
        low = tl.maximum(low, q0 + first - window)
        high = tl.minimum(high, q0 + M + first + window)
    if centre is not None:
        known = inside & (centre == centre)  # NaN sees nothing
        least = tl.min(tl.where(known, centre, keys + width), 0) - width
        most = tl.max(tl.where(known, centre, -width), 0) + width
        low = tl.maximum(low, tl.maximum(least, 0.0).to(tl.int32))
        high = tl.minimum(high, tl.minimum(most, keys * 1.0).to(tl.int32) + 1)
    else:
        low = low // N * N
    return low, high


@triton.jit
@no_type_check
def free_until(q0, first, keys, N: tl.constexpr, CAUSAL: tl.constexpr):
    """Up to which key tiles are whole and seen by all queries from q0 on, where keys are hidden by coming later alone."""
    until = keys // N * N
    if CAUSAL:
        until = tl.minimum(until, tl.maximum(q0 + first + 1, 0) // N * N)
    return until


@triton.jit
@no_type_check
def windows_for(k0, centres, b, keys, width, N: tl.constexpr):
    """From which place to which, in their order, windows reach the keys of a tile; a key more, whatever was rounded.

    Queries of one stretch are in any order, so that all of it is taken or none.
    """
    ends, stretch = centres[2], centres[3]
    lowest, highest = stretch_of(k0 - width - 1, keys, stretch), stretch_of(k0 + N + width, keys, stretch)
    row = ends + b.to(tl.int64) * ((keys - 1) // stretch + 1)
    return tl.load(row + lowest - 1, mask=lowest > 0, other=0), tl.load(row + highest)


@triton.jit
@no_type_check
def queries_for(k0, first, queries, window, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr):
    """From which query to which the keys of a tile are seen at most."""
    low = 0
    high = queries
    if CAUSAL:
        low = tl.maximum(low, k0 - first)
    if WINDOWED:
        low = tl.maximum(low, k0 - window - first)
        high = tl.minimum(high, k0 + N + window - first)
    return low // M * M, high
