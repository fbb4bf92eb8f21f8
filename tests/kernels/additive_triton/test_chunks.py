import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton.arguments import Sides, Tiles
from regard.kernels.additive_triton.chunks import LEAST, Chunk, chunks, need, room, spread

TILES = {"rows": 16, "columns": 16, "gather_rows": 16, "gather_columns": 16}


def sides(heads, queries, keys):
    return Sides.of(torch.randn(1, heads, queries, 8), torch.randn(1, 1, keys, 8), torch.ones(1, 8))


def test_what_is_held_is_scores_with_exponentials_and_later_scores_with_slopes_and_weights():
    assert need(2, 3, 5, True) == need(2, 3, 5, False) == 4 * (5 * 5) + 4 * 6
    assert (need(20, 30, 1, True), need(20, 30, 1, False)) == (10 * 600, 4 * 50 + 4 * 600)


def test_a_chunk_is_as_many_heads_or_tiles_of_queries_as_there_is_room_for():
    whole = need(32, 16, 8, True)
    assert chunks(sides(8, 20, 10), None, Tiles(**TILES, room=3 * whole), True) == [
        Chunk(range(2), range(20)),
        Chunk(range(2, 5), range(20)),
        Chunk(range(5, 8), range(20)),
    ]
    assert chunks(sides(1, 40, 10), None, Tiles(**TILES, room=whole), True) == [
        Chunk(range(1), range(20)),
        Chunk(range(1), range(20, 40)),
    ]
    assert len(chunks(sides(2, 40, 10), None, Tiles(**TILES, room=1), True)) == 6


def test_there_is_room_for_the_bytes_of_the_inputs_and_always_for_some_mebibytes():
    few = sides(1, 2, 3)
    assert room(few, None, Tiles(), False) == LEAST
    assert room(few, torch.empty(0), Tiles(room=7), True) == 7
    value = torch.empty(1, 1, LEAST, 1, dtype=torch.bfloat16)
    inputs = 2 * LEAST + 4 * (2 * 8 + 3 * 8)
    assert (room(few, value, Tiles(), True), room(few, value, Tiles(), False)) == (inputs, inputs * 3 // 2)


def test_ranges_are_as_equal_as_can_be():
    assert list(spread(32, 19)) == [range(16), range(16, 32)]
    assert list(spread(5, 9)) == [range(5)]
