"""Which queries come first where each places its own window: those of a tile then share most of the keys."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.kernels.runtime import launch_cache, tiles

OUTSIDE, FAR = 1e12, 1e15
"""Where a window stands at most, beyond any key, and where a key stands that is not there; its square is a number too."""
WHOLE = 64
"""Places that rows of queries in an order have a multiple of: tiles of the way back are no larger."""
BINS = 512
"""Stretches of a source at most: a program counts the queries of each."""
LEAST = 16
"""Keys of a stretch at least."""
LONGEST = 16384
"""Queries of a row up to which each program adds up what all others counted; sorting takes longer until then."""
TILE, STEP, PART, WARPS = 256, 8, 8, 8
"""Queries that a program finds the places of, tiles that it adds up at once, queries that it compares, and its warps."""


class Ordered(NamedTuple):
    """By the stretch of keys that a window stands in: the queries of each row, how many there are up to the end of each
    stretch, and where their windows stand, up to a whole tile of them."""

    order: Tensor
    ends: Tensor
    placed: Tensor


def stretch(keys: int) -> int:
    """Keys within which it does not matter whose window stands first: a power of two."""
    wide = LEAST
    while wide * BINS < keys:  # and no logarithm, which torch.compile would take to hold for 512 lengths
        wide *= 2
    return wide


def padded(queries: int) -> int:
    """Places of a row of queries in an order."""
    return -(-queries // WHOLE) * WHOLE


def ordered(centres: Tensor, keys: int) -> Ordered:
    """The order of queries with these centres. Equals stay as they come, so that equal inputs give equal bits."""
    if torch.compiler.is_compiling():
        return Ordered(*in_order(centres.detach(), keys))  # whose gradient is not by way of their order
    return by_counting(centres, keys) if centres.shape[1] <= LONGEST else by_sorting(centres, keys)


def by_counting(centres: Tensor, keys: int) -> Ordered:
    """In two launches."""
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
    """As PyTorch sorts: one flat sort of whole numbers takes a GPU fewer passes than one of each row."""
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
    """Room for it."""
    (batch, queries), stretches = centres.shape, (keys - 1) // stretch(keys) + 1
    order = torch.empty_like(centres, dtype=torch.int32)
    return Ordered(order, order.new_empty(batch, stretches), centres.new_empty(batch, padded(queries)))


def there(centres: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """The fields of `Ordered`."""
    return tuple(by_counting(centres, keys) if centres.shape[1] <= LONGEST else by_sorting(centres, keys))  # type: ignore[return-value]


in_order = torch.library.custom_op("regard::in_order", there, mutates_args=())


@in_order.register_fake
def _(centres: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(empty(centres, keys))  # type: ignore[return-value]
