"""Device functions for one tile of queries by keys: loads, mask, and scores.

Scores are in units of log 2 throughout, so that exp2 gives the weights; `LOG2E` converts from nats.
"""

from typing import no_type_check

import triton
import triton.language as tl

from regard.kernels.triton.flash import launch_window_sort
from regard.kernels.triton.flash.window_sort import find_bin

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
FAR, WHOLE = tl.constexpr(launch_window_sort.FAR), tl.constexpr(launch_window_sort.PADDING)


@triton.jit
@no_type_check
def load_rows(view, b, h, at, there, size, BLOCK: tl.constexpr):
    """Load the rows `at` of one head, zeros outside the mask `there`, where nothing is read.

    `there` is None for an unmasked load.
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
def load_tile(view, b, h, start, size, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Load the rows of one head from `start` on without a mask.

    Their offsets from the first are the same for every tile, and take half the registers of addresses.
    """
    row, column = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    base = view[0] + b.to(tl.int64) * view[1] + h.to(tl.int64) * view[2] + tl.cast(start, tl.int64) * view[3]
    return tl.load(base + (row[:, None] * view[3] + column[None, :]), mask=(column < size)[None, :], other=0.0)


@triton.jit
@no_type_check
def store_rows(view, b, h, at, there, size, data, BLOCK: tl.constexpr):
    """Store rows with the addressing of `rows`."""
    column = tl.arange(0, BLOCK)
    base = view[0] + b.to(tl.int64) * view[1] + h.to(tl.int64) * view[2]
    place = base + at.to(tl.int64)[:, None] * view[3] + column[None, :]
    real = (column < size)[None, :]
    if there is not None:
        real = real & there[:, None]
    tl.store(place, data.to(view[0].dtype.element_ty), mask=real)


@triton.jit
@no_type_check
def find_first_position(offset, offsets, b):
    """Position of the first query of a row."""
    first = offset
    if offsets is not None:
        first = tl.load(offsets + b).to(tl.int32)
    return first


@triton.jit
@no_type_check
def find_query_indices(place, centres, b, queries):
    """Query indices of a tile: consecutive or, with predicted windows, in sorted order."""
    q = place
    if centres is not None:
        q = tl.load(centres[1] + b.to(tl.int64) * queries + place, mask=place < queries, other=queries)
    return q


@triton.jit
@no_type_check
def pad_length(queries):
    """Padded length of a sorted row of queries; see `launch_window_sort.padded`."""
    return (queries + WHOLE - 1) // WHOLE * WHOLE


@triton.jit
@no_type_check
def load_centres(place, centres, b, queries):
    """Sorted centres of a tile; beyond the end, a position without keys."""
    return tl.load(centres[0] + b.to(tl.int64) * pad_length(queries) + place, mask=place < queries, other=-FAR)


@triton.jit
@no_type_check
def compute_window_distances(k0, there, centre, N: tl.constexpr):
    """Distances of N keys from k0 on to the centres; larger than any window where there is no key or no query.

    `there` is None without a mask.
    """
    stands = k0 * 1.0 + tl.arange(0, N).to(tl.float32)  # the second term is loop-invariant
    if there is not None:
        stands = tl.where(there, stands, FAR)
    return stands[None, :] - centre[:, None]


@triton.jit
@no_type_check
def find_whole_tiles(low, high, keys, N: tl.constexpr):
    """First key of whole tiles that cover `low` to `high` within the keys, which fill such tiles."""
    return tl.minimum(low, keys - (high - low + N - 1) // N * N)


@triton.jit
@no_type_check
def load_padding(keep, b, k, keys):
    """Padding mask of a tile of keys, with the bounds check."""
    there = k < keys
    if keep is not None:
        there &= tl.load(keep[0] + b.to(tl.int64) * keep[1] + k, mask=there, other=0) != 0
    return there


@triton.jit
@no_type_check
def compute_tile_mask(
    b, h, q, k, first, there, mask, away, queries, window, width, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr
):
    """Mask of a tile; `there` is the padding mask of the keys.

    With predicted windows the distances `away` include it.
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
def compute_tile_scores(
    asked, found, bias, b, h, q, k, seen, away, queries, scale, fall, BELL: tl.constexpr, PRECISION: tl.constexpr
):
    """Scores of a tile, minus infinity where masked; `seen` is None without a mask.

    The bias has one element for each distance k - q. `fall` is the factor of (k - p)² in the Gaussian's exponent.
    """
    scores = tl.dot(asked, tl.trans(found), input_precision=PRECISION).to(tl.float32) * (scale * LOG2E)
    if bias is not None:
        base = bias[0] + b.to(tl.int64) * bias[1] + h.to(tl.int64) * bias[2]
        scores += LOG2E * tl.load(base + (k[None, :] - q[:, None] + queries - 1), mask=seen, other=0.0)
    if BELL == 2:  # a renormalised Gaussian is a term of the scores
        scores += fall * away * away
    if seen is not None:
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@triton.jit
@no_type_check
def compute_gaussian_factor(width):
    """Factor of (k - p)² for exp2, so that the Gaussian is exp(-2 (k - p)² / width²)."""
    return (-2 * LOG2E) / (width * width)


@triton.jit
@no_type_check
def sample_dropout(seed, number, q, k, queries, keys, dropout):
    """Dropout factors: 1 / (1 - dropout) for kept weights, 0 for dropped ones, equal in every pass."""
    place = (number.to(tl.int64) * queries + q.to(tl.int64)[:, None]) * keys + k.to(tl.int64)[None, :]
    return tl.where(tl.rand(tl.load(seed), place) >= dropout, 1 / (1 - dropout), 0.0)


@triton.jit
@no_type_check
def find_key_bounds(
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
    """Bounds of the keys visible to the queries of a tile."""
    low = 0
    high = keys
    if CAUSAL and centre is None:  # otherwise queries may not be consecutive
        high = tl.minimum(high, q0 + M + first)
    if WINDOWED and centre is None:
        low = tl.maximum(low, q0 + first - window)
        high = tl.minimum(high, q0 + M + first + window)
    if centre is not None:
        known = inside & (centre == centre)  # a NaN centre has an empty window
        least = tl.min(tl.where(known, centre, keys + width), 0) - width
        most = tl.max(tl.where(known, centre, -width), 0) + width
        low = tl.maximum(low, tl.maximum(least, 0.0).to(tl.int32))
        high = tl.minimum(high, tl.minimum(most, keys * 1.0).to(tl.int32) + 1)
    else:
        low = low // N * N
    return low, high


@triton.jit
@no_type_check
def find_full_tiles_end(q0, first, keys, N: tl.constexpr, CAUSAL: tl.constexpr):
    """End of the full tiles for all queries from q0 on, under a causal mask alone."""
    until = keys // N * N
    if CAUSAL:
        until = tl.minimum(until, tl.maximum(q0 + first + 1, 0) // N * N)
    return until


@triton.jit
@no_type_check
def find_window_bounds(k0, centres, b, keys, width, N: tl.constexpr):
    """Bounds in sorted order of the queries whose windows reach the keys of a tile, with a key of slack for rounding.

    Queries within a bin are unsorted, so that bins are taken whole.
    """
    ends, stretch = centres[2], centres[3]
    lowest, highest = find_bin(k0 - width - 1, keys, stretch), find_bin(k0 + N + width, keys, stretch)
    row = ends + b.to(tl.int64) * ((keys - 1) // stretch + 1)
    return tl.load(row + lowest - 1, mask=lowest > 0, other=0), tl.load(row + highest)


@triton.jit
@no_type_check
def find_query_bounds(
    k0, first, queries, window, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr
):
    """Bounds of the queries that see the keys of a tile."""
    low = 0
    high = queries
    if CAUSAL:
        low = tl.maximum(low, k0 - first)
    if WINDOWED:
        low = tl.maximum(low, k0 - window - first)
        high = tl.minimum(high, k0 + N + window - first)
    return low // M * M, high
