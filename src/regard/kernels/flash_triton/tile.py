"""What every program does with one tile of queries by keys: load its rows, see what is allowed, and score it.

Scores are in units of log 2 throughout, so that exp2 gives the weights; `LOG2E` takes nats there.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.flash_triton import arguments

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
STRETCH = tl.constexpr(arguments.STRETCH)


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
    tl.store(place, data.to(view[0].dtype.element_ty), mask=there[:, None] & (column < size)[None, :])


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
    """The queries at these places: those of that number or, where they place their windows, those whose window is.

    What is of another row, where a centre is no number, counts as behind the end.
    """
    q = place
    if centres is not None:
        row = b.to(tl.int64) * queries
        q = (tl.load(centres[2] + row + place, mask=place < queries, other=row + queries) - row).to(tl.int32)
        q = tl.where((q >= 0) & (q < queries), q, queries)
    return q


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
def allowed(b, h, q, k, first, there, mask, centre, queries, window, width, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr):
    """Which of these queries may see which of these keys; `there` are the keys that are there at all."""
    seen = (q < queries)[:, None] & there[None, :]
    far = k[None, :] - (q + first)[:, None]
    if CAUSAL:
        seen &= far <= 0
    if WINDOWED:
        seen &= (far <= window) & (far >= -window)
    if centre is not None:
        seen &= tl.abs(k[None, :].to(tl.float32) - centre[:, None]) <= width
    if mask is not None:
        base = mask[0] + b.to(tl.int64) * mask[1] + h.to(tl.int64) * mask[2]
        seen &= tl.load(base + q.to(tl.int64)[:, None] * mask[3] + k[None, :], mask=seen, other=0) != 0
    return seen


@triton.jit
@no_type_check
def scored(asked, found, bias, b, h, q, k, seen, centre, queries, scale, width, BELL: tl.constexpr, PRECISION: tl.constexpr):
    """The scores of a tile, minus infinity where a key may not be seen; `seen` is None where all may be.

    A bias has one number for each distance k - q.
    """
    scores = tl.dot(asked, tl.trans(found), input_precision=PRECISION).to(tl.float32) * (scale * LOG2E)
    if bias is not None:
        base = bias[0] + b.to(tl.int64) * bias[1] + h.to(tl.int64) * bias[2]
        scores += LOG2E * tl.load(base + (k[None, :] - q[:, None] + queries - 1), mask=seen, other=0.0)
    if BELL == 2:  # a Gaussian whose weights add up to one again is one more term of the scores
        away = (k[None, :].to(tl.float32) - centre[:, None]) / width
        scores += (-2 * LOG2E) * away * away
    if seen is not None:
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@triton.jit
@no_type_check
def bell(k, centre, width):
    """exp(-2 (k - p)² / width²)."""
    away = (k[None, :].to(tl.float32) - centre[:, None]) / width
    return tl.exp2((-2 * LOG2E) * away * away)


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
        least = tl.min(tl.where(inside, centre, keys + width), 0) - width
        most = tl.max(tl.where(inside, centre, -width), 0) + width
        low = tl.maximum(low, tl.maximum(least, 0.0).to(tl.int32))
        high = tl.minimum(high, tl.minimum(most, keys * 1.0).to(tl.int32) + 1)
    return low // N * N, high


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
def stretch(centre, keys):
    """In which stretch of the keys a window stands; see `arguments.ordered`, which must come to the same."""
    return (tl.minimum(tl.maximum(centre, 0.0), keys * 1.0) * (1.0 / STRETCH)).to(tl.int32)


@triton.jit
@no_type_check
def windows_for(k0, centres, b, queries, keys, width, M: tl.constexpr, N: tl.constexpr):
    """From which place to which, in their order, windows reach the keys of a tile; a key more, whatever was rounded.

    Queries of one stretch are in any order, so that all of it is taken or none.
    """
    lowest, highest = stretch(k0 - width - 1, keys), stretch(k0 + N + width, keys)
    before = tl.zeros([1024], tl.int32)
    until = tl.zeros([1024], tl.int32)
    for start in range(0, queries, 1024):
        place = start + tl.arange(0, 1024)
        real = place < queries
        at = stretch(tl.load(centres[0] + b.to(tl.int64) * centres[1] + place, mask=real, other=0.0), keys)
        before += (real & (at < lowest)).to(tl.int32)
        until += (real & (at <= highest)).to(tl.int32)
    return tl.sum(before, 0) // M * M, tl.sum(until, 0)


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
