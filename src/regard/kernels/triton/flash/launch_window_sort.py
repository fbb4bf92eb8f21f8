"""Sorting of queries by their predicted windows, so that those of a tile share most of the keys."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.kernels.runtime import launch_cache, tiles

OUTSIDE, FAR = 1e12, 1e15
"""Upper bound of a window's centre, beyond any key, and the position of a missing key; their squares are finite."""
WHOLE = 64
"""The multiple to which sorted rows of queries are padded: tiles of the backward are no larger."""
BINS = 512
"""The most bins of a source: a program counts the queries of each."""
LEAST = 16
"""The fewest keys of a bin."""
LONGEST = 16384
"""The most queries of a row for the counting sort; beyond that PyTorch's sort is faster."""
TILE, STEP, PART, WARPS = 256, 8, 8, 8
"""Queries of a program, tiles that it sums per iteration, queries that it compares, and its warps."""


class Ordered(NamedTuple):
    """Queries of each row sorted by the bin of their window, the end of each bin, and the padded sorted centres."""

    order: Tensor
    ends: Tensor
    placed: Tensor


def stretch(keys: int) -> int:
    """Keys of a bin, within which queries are not sorted: a power of two."""
    wide = LEAST
    while wide * BINS < keys:  # no logarithm, on which torch.compile would guard for 512 lengths
        wide *= 2
    return wide


def padded(queries: int) -> int:
    """Padded length of a sorted row of queries."""
    return -(-queries // WHOLE) * WHOLE


def ordered(centres: Tensor, keys: int) -> Ordered:
    """Sort queries by these centres; the sort is stable, so that results are deterministic."""
    if torch.compiler.is_compiling():
        return Ordered(*in_order(centres.detach(), keys))  # the order has no gradient
    return by_counting(centres, keys) if centres.shape[1] <= LONGEST else by_sorting(centres, keys)


def by_counting(centres: Tensor, keys: int) -> Ordered:
    """Counting sort in two launches."""
    from regard.kernels.triton.flash import window_sort as programs

    (batch, queries), found = centres.shape, empty(centres, keys)
    bins, count = max(16, 1 << (found.ends.shape[1] - 1).bit_length()), -(-padded(queries) // TILE)
    tallies = found.order.new_empty(batch, count, bins + TILE, dtype=torch.int16)
    sizes = {"STRETCH": stretch(keys), "BINS": bins, "STEP": STEP, "PART": PART, "M": TILE}
    with tiles.on(centres.device):
        first = centres, tallies, queries, keys
        launch_cache.start(programs.tally, (count, batch, 1), sizes, first, num_warps=WARPS)
        then = centres, tallies, *found, queries, keys
        launch_cache.start(programs.order, (count, batch, 1), sizes, then, num_warps=WARPS)
    return found


def by_sorting(centres: Tensor, keys: int) -> Ordered:
    """PyTorch's sort: one flat sort of integers takes a GPU fewer passes than one per row."""
    (batch, queries), wide = centres.shape, stretch(keys)
    stretches = (keys - 1) // wide + 1
    kind = torch.int16 if batch * stretches < 1 << 15 else torch.int32 if batch * stretches < 1 << 31 else torch.int64
    with torch.no_grad():
        places = (centres.nan_to_num(0.0).clamp(0, keys) * (1 / wide)).to(kind).clamp(max=stretches - 1)
        rows = torch.arange(batch, device=centres.device)[:, None]
        sorted_places, order = (places + (rows * stretches).to(kind)).flatten().sort(stable=True)
        every = torch.arange(batch * stretches, device=centres.device, dtype=kind)
        ends = torch.searchsorted(sorted_places, every, right=True).view(batch, stretches) - rows * queries
        order = order.view(batch, queries) - rows * queries
        placed = centres.gather(1, order).clamp(-OUTSIDE, OUTSIDE)
        return Ordered(order.int(), ends.int(), F.pad(placed, (0, padded(queries) - queries), value=-FAR))


def empty(centres: Tensor, keys: int) -> Ordered:
    """Allocate the outputs."""
    (batch, queries), stretches = centres.shape, (keys - 1) // stretch(keys) + 1
    order = torch.empty_like(centres, dtype=torch.int32)
    return Ordered(order, order.new_empty(batch, stretches), centres.new_empty(batch, padded(queries)))


def there(centres: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Operator of the sort: the fields of `Ordered`."""
    return tuple(by_counting(centres, keys) if centres.shape[1] <= LONGEST else by_sorting(centres, keys))  # type: ignore[return-value]


in_order = torch.library.custom_op("regard::in_order", there, mutates_args=())


@in_order.register_fake
def _(centres: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(empty(centres, keys))  # type: ignore[return-value]
