"""Sorting of queries by their predicted windows, so that those of a tile share most of the keys."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.kernels.runtime import launch_cache, tiles

OUTSIDE, FAR = 1e12, 1e15
"""Upper bound of a window's centre, beyond any key, and the position of a missing key; their squares are finite."""
PADDING = 64
"""The multiple to which sorted rows of queries are padded: tiles of the backward are no larger."""
BINS = 512
"""The most bins of a source: a program counts the queries of each."""
MIN_BIN = 16
"""The fewest keys of a bin."""
MAX_COUNTED = 16384
"""The most queries of a row for the counting sort; beyond that PyTorch's sort is faster."""
TILE, STEP, PART, WARPS = 256, 8, 8, 8
"""Queries of a program, tiles that it sums per iteration, queries that it compares, and its warps."""


class SortedQueries(NamedTuple):
    """Queries of each row sorted by the bin of their window, the end of each bin, and the padded sorted centres."""

    order: Tensor
    ends: Tensor
    sorted_centres: Tensor


def compute_bin_width(keys: int) -> int:
    """Keys of a bin, within which queries are not sorted: a power of two."""
    bin_width = MIN_BIN
    while bin_width * BINS < keys:  # no logarithm, on which torch.compile would guard for 512 lengths
        bin_width *= 2
    return bin_width


def pad_length(queries: int) -> int:
    """Padded length of a sorted row of queries."""
    return -(-queries // PADDING) * PADDING


def sort_queries(centres: Tensor, keys: int) -> SortedQueries:
    """Sort queries by these centres; the sort is stable, so that results are deterministic."""
    if torch.compiler.is_compiling():
        return SortedQueries(*sort_operator(centres.detach(), keys))  # the order has no gradient
    return sort_by_counting(centres, keys) if centres.shape[1] <= MAX_COUNTED else sort_with_torch(centres, keys)


def sort_by_counting(centres: Tensor, keys: int) -> SortedQueries:
    """Counting sort in two launches."""
    from regard.kernels.triton.flash import window_sort as programs

    (batch, queries), output = centres.shape, allocate_output(centres, keys)
    bins, count = max(16, 1 << (output.ends.shape[1] - 1).bit_length()), -(-pad_length(queries) // TILE)
    tallies = output.order.new_empty(batch, count, bins + TILE, dtype=torch.int16)
    sizes = {"BIN_WIDTH": compute_bin_width(keys), "BINS": bins, "STEP": STEP, "PART": PART, "M": TILE}
    with tiles.use_device(centres.device):
        first = centres, tallies, queries, keys
        launch_cache.launch_cached(programs.count_kernel, (count, batch, 1), sizes, first, num_warps=WARPS)
        second = centres, tallies, *output, queries, keys
        launch_cache.launch_cached(programs.order_kernel, (count, batch, 1), sizes, second, num_warps=WARPS)
    return output


def sort_with_torch(centres: Tensor, keys: int) -> SortedQueries:
    """PyTorch's sort: one flat sort of integers takes a GPU fewer passes than one per row."""
    (batch, queries), bin_width = centres.shape, compute_bin_width(keys)
    bin_count = (keys - 1) // bin_width + 1
    kind = torch.int16 if batch * bin_count < 1 << 15 else torch.int32 if batch * bin_count < 1 << 31 else torch.int64
    with torch.no_grad():
        bins = (centres.nan_to_num(0.0).clamp(0, keys) * (1 / bin_width)).to(kind).clamp(max=bin_count - 1)
        rows = torch.arange(batch, device=centres.device)[:, None]
        sorted_bins, order = (bins + (rows * bin_count).to(kind)).flatten().sort(stable=True)
        all_bins = torch.arange(batch * bin_count, device=centres.device, dtype=kind)
        ends = torch.searchsorted(sorted_bins, all_bins, right=True).view(batch, bin_count) - rows * queries
        order = order.view(batch, queries) - rows * queries
        in_order = centres.gather(1, order).clamp(-OUTSIDE, OUTSIDE)
        return SortedQueries(order.int(), ends.int(), F.pad(in_order, (0, pad_length(queries) - queries), value=-FAR))


def allocate_output(centres: Tensor, keys: int) -> SortedQueries:
    """Allocate the outputs."""
    (batch, queries), bin_count = centres.shape, (keys - 1) // compute_bin_width(keys) + 1
    order = torch.empty_like(centres, dtype=torch.int32)
    return SortedQueries(order, order.new_empty(batch, bin_count), centres.new_empty(batch, pad_length(queries)))


def sort_forward(centres: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Operator of the sort: the fields of `SortedQueries`."""
    return tuple(sort_by_counting(centres, keys) if centres.shape[1] <= MAX_COUNTED else sort_with_torch(centres, keys))  # type: ignore[return-value]


sort_operator = torch.library.custom_op("regard::in_order", sort_forward, mutates_args=())


@sort_operator.register_fake
def _(centres: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(allocate_output(centres, keys))  # type: ignore[return-value]
