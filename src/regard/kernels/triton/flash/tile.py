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
SCAN = tl.constexpr(1024)
"""Keys of a padding mask that are read at a time."""
FAR, WHOLE = tl.constexpr(launch_window_sort.FAR), tl.constexpr(launch_window_sort.PADDING)


@triton.jit
@no_type_check
def load_rows(view, b, h, at, valid, size, BLOCK: tl.constexpr):
    """Load the rows `at` of one head, zeros outside the mask `valid`, where nothing is read.

    `valid` is None for an unmasked load.
    """
    column = tl.arange(0, BLOCK)
    base = view[0] + b.to(tl.int64) * view[1] + h.to(tl.int64) * view[2]
    address = base + at.to(tl.int64)[:, None] * view[3] + column[None, :]
    mask = (column < size)[None, :]
    if valid is not None:
        mask = mask & valid[:, None]
    return tl.load(address, mask=mask, other=0.0)


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
def store_rows(view, b, h, at, valid, size, data, BLOCK: tl.constexpr):
    """Store rows with the addressing of `load_rows`."""
    column = tl.arange(0, BLOCK)
    base = view[0] + b.to(tl.int64) * view[1] + h.to(tl.int64) * view[2]
    address = base + at.to(tl.int64)[:, None] * view[3] + column[None, :]
    mask = (column < size)[None, :]
    if valid is not None:
        mask = mask & valid[:, None]
    tl.store(address, data.to(view[0].dtype.element_ty), mask=mask)


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
    m = place
    if centres is not None:
        m = tl.load(centres[1] + b.to(tl.int64) * queries + place, mask=place < queries, other=queries)
    return m


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
def compute_window_distances(k0, valid, centre, N: tl.constexpr):
    """Distances of N keys from k0 on to the centres; larger than any window where there is no key or no query.

    `valid` is None without a mask.
    """
    positions = k0 * 1.0 + tl.arange(0, N).to(tl.float32)  # the second term is loop-invariant
    if valid is not None:
        positions = tl.where(valid, positions, FAR)
    return positions[None, :] - centre[:, None]


@triton.jit
@no_type_check
def find_whole_tiles(low, high, keys, N: tl.constexpr):
    """First key of whole tiles that cover `low` to `high` within the keys, which fill such tiles."""
    return tl.minimum(low, keys - (high - low + N - 1) // N * N)


@triton.jit
@no_type_check
def load_padding(keep, b, n, keys):
    """Padding mask of a tile of keys, with the bounds check."""
    valid = n < keys
    if keep is not None:
        valid &= tl.load(keep[0] + b.to(tl.int64) * keep[1] + n, mask=valid, other=0) != 0
    return valid


@triton.jit
@no_type_check
def find_kept_bounds(keep, b, keys, BLOCK: tl.constexpr):
    """First key that is padding, and the end of the last one that is not, of a row of the batch."""
    hole = keys
    end = keys - keys
    for k0 in range(0, keys, BLOCK):
        n = k0 + tl.arange(0, BLOCK)
        valid = tl.load(keep[0] + b.to(tl.int64) * keep[1] + n, mask=n < keys, other=0) != 0
        end = tl.maximum(end, tl.max(tl.where(valid, n + 1, 0), 0))
        hole = tl.minimum(hole, tl.min(tl.where(valid | (n >= keys), keys, n), 0))
    return hole, end


@triton.jit
@no_type_check
def compute_tile_mask(
    b, h, m, n, first, valid, mask, distance, queries, window, width, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr
):
    """Mask of a tile; `valid` is the padding mask of the keys.

    With predicted windows `distance` includes it.
    """
    allowed = tl.abs(distance) <= width if distance is not None else (m < queries)[:, None] & valid[None, :]
    relative = n[None, :] - (m + first)[:, None]
    if CAUSAL:
        allowed &= relative <= 0
    if WINDOWED:
        allowed &= (relative <= window) & (relative >= -window)
    if mask is not None:
        base = mask[0] + b.to(tl.int64) * mask[1] + h.to(tl.int64) * mask[2]
        allowed &= tl.load(base + m.to(tl.int64)[:, None] * mask[3] + n[None, :], mask=allowed, other=0) != 0
    return allowed


@triton.jit
@no_type_check
def compute_tile_scores(
    q,
    k,
    bias,
    b,
    h,
    m,
    n,
    allowed,
    distance,
    queries,
    scale,
    gaussian_factor,
    GAUSSIAN: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Scores of a tile, minus infinity where masked; `allowed` is None without a mask.

    The bias has one element for each distance k - q. `gaussian_factor` is that of (k - p)² in the Gaussian's exponent.
    """
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION).to(tl.float32) * (scale * LOG2E)
    if bias is not None:
        base = bias[0] + b.to(tl.int64) * bias[1] + h.to(tl.int64) * bias[2]
        scores += LOG2E * tl.load(base + (n[None, :] - m[:, None] + queries - 1), mask=allowed, other=0.0)
    if GAUSSIAN == 2:  # a renormalised Gaussian is a term of the scores
        scores += gaussian_factor * distance * distance
    if allowed is not None:
        scores = tl.where(allowed, scores, float("-inf"))
    return scores


@triton.jit
@no_type_check
def compute_gaussian_factor(width):
    """Factor of (k - p)² for exp2, so that the Gaussian is exp(-2 (k - p)² / width²)."""
    return (-2 * LOG2E) / (width * width)


@triton.jit
@no_type_check
def sample_dropout(seed, number, m, n, queries, keys, dropout):
    """Dropout factors: 1 / (1 - dropout) for kept weights, 0 for dropped ones, equal in every pass."""
    index = (number.to(tl.int64) * queries + m.to(tl.int64)[:, None]) * keys + n.to(tl.int64)[None, :]
    return tl.where(tl.rand(tl.load(seed), index) >= dropout, 1 / (1 - dropout), 0.0)


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
    ends, bin_width = centres[2], centres[3]
    lowest, highest = find_bin(k0 - width - 1, keys, bin_width), find_bin(k0 + N + width, keys, bin_width)
    row = ends + b.to(tl.int64) * ((keys - 1) // bin_width + 1)
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
