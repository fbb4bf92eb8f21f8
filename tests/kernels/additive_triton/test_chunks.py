from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton.arguments import Sides, Tiles
from regard.kernels.additive_triton.chunks import Chunk, beside, cell, chunks, keeps, need, room, spread

TILES = {"rows": 16, "columns": 16, "gather_rows": 16, "gather_columns": 16}


def sides(heads, queries, keys):
    return Sides.of(torch.randn(1, heads, queries, 8), torch.randn(1, 1, keys, 8), torch.ones(1, 8))


LEAST = Tiles().least


def test_what_is_held_is_scores_with_exponentials_and_later_scores_with_slopes_and_weights():
    assert need(2, 3, 5, 10) == need(2, 3, 5, 4) == 4 * (5 * 5) + 4 * 6
    assert (need(20, 30, 1, 10), need(20, 30, 1, 4)) == (10 * 600, 4 * 50 + 4 * 600)


def test_parts_of_a_gradient_have_the_room_that_is_left_and_so_has_their_sum():
    held = [torch.empty(2, 3), torch.empty(4, dtype=torch.bfloat16)]
    assert [beside(held, 10, room) for room in (32 + 160, 32 + 159, 32, 0)] == [3, 2, -1, -2]


@pytest.mark.parametrize(("dtype", "bytes_back"), [(torch.bfloat16, 6), (torch.float32, 8)])
def test_weights_take_the_place_of_what_flows_into_them_and_are_held_for_nothing(dtype, bytes_back):
    value = torch.empty(1, 1, 2, 3, dtype=dtype)
    assert [cell(value, back) for back in (False, True)] == [4, bytes_back]


def test_without_a_least_what_is_held_with_all_results_is_less_than_twice_the_inputs():
    query, key, value = (torch.empty(32, 1, 256, 512, dtype=torch.bfloat16) for _ in range(3))
    given, inputs = Sides(query, key, query[0, 0, :1]), 3 * query.numel() * 2
    for back, results in ((False, 1 / 3), (True, 4 / 3)):
        counts = [len(each.heads) for each in chunks(given, value, Tiles(least=0), back, whole=True)]
        held = max(counts) * need(256, 256, 512, cell(value, back))
        assert inputs / 4 < held < (2 - (results if len(counts) > 1 else 0)) * inputs  # of one chunk there is no context yet
        assert len(chunks(given, value, Tiles(), back, whole=True)) == 1


def test_a_chunk_is_as_many_heads_or_tiles_of_queries_as_there_is_room_for():
    whole = need(32, 16, 8, 6)
    assert chunks(sides(8, 20, 10), None, Tiles(**TILES, room=3 * whole), True, whole=True) == [
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
    assert (room(few, value, Tiles(), True), room(few, value, Tiles(), False)) == (inputs * 3 // 5, inputs * 3 // 2)
    assert room(few, value, Tiles(least=0), True) == inputs * 3 // 5


def test_ranges_are_as_equal_as_can_be():
    assert list(spread(32, 19)) == [range(16), range(16, 32)]
    assert list(spread(5, 9)) == [range(5)]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [({}, False), ({"kept": 0.1}, False), ({"kept": 4.0}, True), ({"kept": 4.0, "room": 1 << 12}, False)],
)
def test_scores_are_kept_where_they_are_small_and_one_chunk_holds_them(changed, expected):
    given = sides(2, 40, 40)
    assert keeps(given, torch.randn(1, 1, 40, 8), Tiles(**TILES, **changed)) == expected


def test_a_chunk_fills_the_processors_unless_scores_are_kept(monkeypatch):
    from regard.kernels.additive_triton import chunks as here

    monkeypatch.setattr(here, "processors", lambda device: 132)
    tiles = Tiles(fill=8)
    for shape, there, back in (((32, 256, 512), 32, 11), ((8, 1024, 256), 2, 4)):
        data = torch.empty(shape[0], 1, *shape[1:], dtype=torch.bfloat16)
        given = Sides(data, data, data[0, 0, :1])
        for way, expected in ((False, there), (True, back)):
            assert max(len(each.heads) for each in chunks(given, data, tiles, way)) == expected
        assert keeps(given, data, tiles)
        assert len(chunks(given, data, tiles, False, whole=True)) == 1
        small = replace(tiles, least=0, kept=0.4)  # all of the first at once, whose scores are kept
        assert len(chunks(given, data, small, False)[0].heads) == there
        assert keeps(given, data, small) == (there == shape[0])
    one = torch.empty(4, 1, 4096, 64, dtype=torch.bfloat16)
    assert len(chunks(Sides(one, one, one[0, 0, :1]), one, tiles, False)) == 4  # more than fill them are one at least
    few = replace(tiles, least=1 << 20)
    assert len(chunks(Sides(one, one, one[0, 0, :1]), one, few, False)[0].rows) < 4096


def test_a_chunk_has_no_more_heads_than_a_grid_and_no_more_scores_of_one_than_its_places_count():
    many = torch.empty(1).expand(70_000, 1, 2, 1)
    counts = [
        len(each.heads) for each in chunks(Sides(many, many, many[0, 0, :1]), many, Tiles(room=1 << 40), False, whole=True)
    ]
    assert counts == [35_000, 35_000]
    long = torch.empty(1).expand(2, 1, 1 << 16, 1)  # 2^32 scores a head
    rows = [
        len(each.rows) for each in chunks(Sides(long, long, long[0, 0, :1]), long, Tiles(room=1 << 40), False, whole=True)
    ]
    assert sum(rows) == 2 << 16
    assert max(rows) < 1 << 15
    half = long[:, :, : (1 << 15) - 32]
    assert len(chunks(Sides(half, long, half[0, 0, :1]), long, Tiles(room=1 << 40), False, whole=True)) == 1
    assert not keeps(Sides(long, long, long[0, 0, :1]), long, Tiles(room=1 << 40, kept=1e9))
