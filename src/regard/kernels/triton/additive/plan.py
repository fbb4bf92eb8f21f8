"""How the pass of `both` over a chunk is dealt to programs: tiles of keys, shares of the queries, and parts of gradients."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.triton.additive.arguments import WARP, Sides, Tiles, padded, parts, processors, tiled


class Plan(NamedTuple):
    """How a pass is dealt: among how many threads the keys of a tile are, how many tiles, and how queries are shared."""

    across: int
    tiles: int
    shared: int
    """How many programs share the queries of a head, which have `reach` of them each."""
    reach: int
    dtype: torch.dtype
    """Of parts: they may cancel, and are single unless there is no room. In the precision of the gradient the first of them
    takes its place."""


def plan(
    sides: Sides,
    slopes: Float[Tensor, "some_heads padded_queries padded_keys"],
    tiles: Tiles,
    hides: bool,
    room: int,
    adds: bool = False,
) -> Plan:
    """Queries are shared until every processor has four programs, as long as there is room for what they leave.

    `adds`: parts of the gradient of the keys are added to what is in its place, so that none of them can be there.
    """
    (many, tall, wide), (keys, hidden) = slopes.shape, sides.key.shape[2:]
    across, count = tiled(wide, tiles, hides, sides.key.dtype)
    programs = many * count * parts(hidden, units(across, tiles))
    wanted = max(1, min(4 * processors(slopes.device) // programs, parts(tall, tiles.both_rows), tiles.both_parts))
    left, rows = room - slopes.numel() * slopes.element_size(), min(tall, sides.query.shape[2])
    for dtype in (torch.float32, sides.key.dtype):
        each = dtype.itemsize * many * hidden
        beside_queries = left - (0 if count == 1 else (count - (dtype == sides.query.dtype)) * rows * each)
        fits = beside_queries // (keys * each) + (dtype == sides.key.dtype and not adds)
        if beside_queries >= 0 and (wanted == 1 or fits >= wanted):
            break
    several = max(1, min(wanted, fits))
    reach = padded(parts(tall, several), tiles.both_rows)
    return Plan(across, count, parts(tall, reach), reach, dtype)


def units(across: int, tiles: Tiles) -> int:
    """Hidden units of a program whose threads deal the keys of a tile among so many."""
    return tiles.both_warps * WARP // across
