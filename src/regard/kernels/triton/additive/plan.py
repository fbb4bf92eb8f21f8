"""Work partition of `backward_qkv` over a chunk: tiles of keys, splits of the queries, and partial sums of gradients."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.triton.additive.arguments import (
    WARP,
    ScoreInputs,
    Tiles,
    count_multiprocessors,
    parts,
    round_up,
    split_keys,
)


class Plan(NamedTuple):
    """Partition of a pass: threads that share the keys of a tile, number of tiles, and splits of the queries."""

    across: int
    tiles: int
    shared: int
    """Programs that split the queries of a head, with `reach` of them each."""
    reach: int
    dtype: torch.dtype
    """Dtype of the partial sums: they may cancel, and are float32 if memory allows. In the gradient's own dtype the first of
    them is written in its place."""


def build_plan(
    sides: ScoreInputs,
    dscores: Float[Tensor, "some_heads padded_queries padded_keys"],
    tiles: Tiles,
    hides: bool,
    room: int,
    adds: bool = False,
) -> Plan:
    """Plan the splits: queries are split until every multiprocessor has four programs, if partial sums fit in memory.

    With `adds` the partial sums of dk are added to dk, so that none of them can be written in its place.
    """
    (many, tall, wide), (keys, hidden) = dscores.shape, sides.key.shape[2:]
    across, count = split_keys(wide, tiles, hides, sides.key.dtype)
    programs = many * count * parts(hidden, count_units_per_program(across, tiles))
    wanted = max(
        1, min(4 * count_multiprocessors(dscores.device) // programs, parts(tall, tiles.both_rows), tiles.both_parts)
    )
    remaining, rows = room - dscores.numel() * dscores.element_size(), min(tall, sides.query.shape[2])
    for dtype in (torch.float32, sides.key.dtype):
        row_bytes = dtype.itemsize * many * hidden
        after_dq = remaining - (0 if count == 1 else (count - (dtype == sides.query.dtype)) * rows * row_bytes)
        fits = after_dq // (keys * row_bytes) + (dtype == sides.key.dtype and not adds)
        if after_dq >= 0 and (wanted == 1 or fits >= wanted):
            break
    splits = max(1, min(wanted, fits))
    reach = round_up(parts(tall, splits), tiles.both_rows)
    return Plan(across, count, parts(tall, reach), reach, dtype)


def count_units_per_program(across: int, tiles: Tiles) -> int:
    """Hidden units of a program with `across` threads along the keys of a tile."""
    return tiles.both_warps * WARP // across
