import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import chunks as here
from regard.kernels.triton.additive.arguments import ScoreInputs, Tiles
from regard.kernels.triton.additive.chunks import (
    Chunk,
    Workspace,
    count_heads_per_launch,
    estimate_workspace,
    limit_workspace,
    saves_scores,
    split_chunks,
    split_range,
)

TILES = {"rows": 16, "columns": 16, "four_rows": 16, "four_columns": 32, "both": 8, "both_rows": 16}


def sides(heads, queries, keys):
    return ScoreInputs.of(torch.randn(1, heads, queries, 8), torch.randn(1, 1, keys, 8), torch.ones(1, 8))


LEAST = Tiles().least


def bare(heads, queries, keys, hidden, dtype=torch.bfloat16):
    query, key = torch.empty(heads, 1, queries, hidden, dtype=dtype), torch.empty(heads, 1, keys, hidden, dtype=dtype)
    return ScoreInputs(query, key, query[0, 0, :1]), torch.empty(heads, 1, keys, hidden, dtype=dtype)


def test_what_is_held_is_scores_with_both_sides_and_later_slopes_with_weights_or_parts(monkeypatch):
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    given, value = bare(8, 1024, 1024, 256)
    cells, side = 1024 * 1024, 2048 * 256 * 2
    assert estimate_workspace(given, value, 1024, Tiles(), backward=False) == Workspace(4 * cells, side, 2)
    assert estimate_workspace(given, value, 1024, Tiles(), backward=True) == Workspace(6 * cells, 0, 2)
    assert estimate_workspace(given, value, 512, Tiles(), backward=True) == Workspace(3 * cells, 0, 4)
    part = 1024 * 256 * 2
    assert estimate_workspace(given, value, 1024, Tiles(), backward=True, lean=True) == Workspace(
        cells * 17 // 8 + part, side - part, 2
    )
    given, value = bare(8, 256, 1024, 4096)
    parts = 256 * 4096 * 2  # of two tiles of keys, of which the first leaves its own in its place
    assert estimate_workspace(given, value, 256, Tiles(), backward=True) == Workspace(
        cells + parts, 1280 * 4096 * 2 - parts, 8
    )
    assert estimate_workspace(given, value, 256, Tiles(), backward=True, saved_bytes=1) == Workspace(cells + parts, 0, 8)
    given, value = bare(8, 1024, 1024, 256, torch.float32)
    assert estimate_workspace(given, value, 1024, Tiles(), backward=False) == Workspace(4 * cells, 2 * side, 2)


@pytest.mark.parametrize(
    ("shape", "dtype", "heads"),
    [
        ((32, 256, 256, 512), torch.bfloat16, 33),  # eight programs of 64 x 128 a head, and two a processor
        ((32, 256, 256, 512), torch.float32, 33),  # 32 programs of 32 x 64, and eight a processor
        ((8, 1024, 1024, 256), torch.bfloat16, 2),
        ((99, 1024, 1024, 256), torch.bfloat16, 24),  # a quarter
        ((1, 4096, 4096, 256), torch.bfloat16, 1),
    ],
)
def test_one_launch_compares_as_many_heads_as_keep_the_processors_busy(monkeypatch, shape, dtype, heads):
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    given, _ = bare(*shape, dtype)
    assert count_heads_per_launch(given, shape[1], shape[2], Tiles()) == heads


def test_heads_fit_with_both_sides_of_those_that_one_launch_compares():
    each = Workspace(10, 3, 2)
    assert [each.of(heads) for heads in (1, 2, 3)] == [13, 26, 36]
    assert [each.most(room) for room in (12, 13, 25, 26, 35, 36)] == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("shape", [(32, 256, 256, 512), (8, 1024, 1024, 256)])
def test_what_is_held_with_all_results_is_less_than_twice_the_inputs(monkeypatch, shape):
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    given, value = bare(*shape)
    inputs = 3 * value.numel() * 2
    kept = 4 * shape[0] * shape[1] * shape[2] if saves_scores(given, value, Tiles(), False) else 0
    for back, results in ((False, 1 / 3), (True, 4 / 3)):
        counts = [len(each.heads) for each in split_chunks(given, value, Tiles(), back, kept * back)]
        held = estimate_workspace(given, value, shape[1], Tiles(), back, kept * back).of(max(counts)) + kept * back
        assert inputs / 4 < held < (2 - (results if len(counts) > 1 else 0)) * inputs  # of one chunk there is no context yet


def test_a_chunk_is_as_many_heads_or_tiles_of_queries_as_there_is_room_for():
    given = sides(8, 20, 10)
    whole = estimate_workspace(given, None, 20, Tiles(**TILES), True)
    assert split_chunks(given, None, Tiles(**TILES, fill=99, room=whole.of(3)), True) == [
        Chunk(range(2), range(20)),
        Chunk(range(2, 5), range(20)),
        Chunk(range(5, 8), range(20)),
    ]
    assert split_chunks(sides(1, 40, 10), None, Tiles(**TILES, room=whole.of(1)), True) == [
        Chunk(range(1), range(20)),
        Chunk(range(1), range(20, 40)),
    ]
    assert len(split_chunks(sides(2, 40, 10), None, Tiles(**TILES, room=1), True)) == 6


def test_there_is_room_for_the_bytes_of_the_inputs_and_always_for_some_mebibytes():
    few, least = sides(1, 2, 3), Tiles().least
    assert limit_workspace(few, None, Tiles(), False) == least
    assert limit_workspace(few, torch.empty(0), Tiles(room=7), True) == 7
    value = torch.empty(1, 1, least, 1, dtype=torch.bfloat16)
    inputs = 2 * least + 4 * (2 * 8 + 3 * 8)
    assert (limit_workspace(few, value, Tiles(), True), limit_workspace(few, value, Tiles(), False)) == (
        inputs * 3 // 5,
        inputs * 3 // 2,
    )
    assert limit_workspace(few, value, Tiles(least=0), True, saved_bytes=inputs // 5) == inputs * 3 // 5 - inputs // 5


def test_ranges_are_as_equal_as_can_be():
    assert list(split_range(32, 19)) == [range(16), range(16, 32)]
    assert list(split_range(5, 9)) == [range(5)]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, False),
        ({"saved_scores": 0.1}, False),
        ({"saved_scores": 4.0}, True),
        ({"saved_scores": 4.0, "room": 1 << 12}, False),
    ],
)
def test_scores_are_kept_where_they_are_small_and_one_chunk_holds_them(changed, expected):
    given = sides(2, 40, 40)
    assert saves_scores(given, torch.randn(1, 1, 40, 8), Tiles(**TILES, **changed), hides=False) == expected


def test_a_chunk_of_the_way_back_fills_the_processors(monkeypatch):
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    for shape, there, back in (((32, 256, 256, 512), 32, 16), ((8, 1024, 1024, 256), 4, 1)):
        given, value = bare(*shape)
        kept = saves_scores(given, value, Tiles(), False)
        assert kept == (there == 32)
        for way, expected in ((False, there), (True, back)):
            found = split_chunks(given, value, Tiles(), way, saved_bytes=4 * shape[0] * shape[1] * shape[2] * kept)
            assert max(len(each.heads) for each in found) == expected
    given, value = bare(16, 1024, 1024, 256)
    found = split_chunks(given, value, Tiles(least=1 << 30), True)
    assert [len(each.heads) for each in found] == [8, 8]  # twice as many as run at once
    long, values = bare(4, 4096, 4096, 64)
    assert len(split_chunks(long, values, Tiles(least=66 << 20), False)) == 4
    assert len(split_chunks(long, values, Tiles(least=1 << 20), False)[0].rows) < 4096


def test_a_chunk_has_no_more_heads_than_a_grid_and_no_more_scores_of_one_than_its_places_count():
    many = torch.empty(1).expand(70_000, 1, 2, 1)
    counts = [
        len(each.heads) for each in split_chunks(ScoreInputs(many, many, many[0, 0, :1]), many, Tiles(room=1 << 40), False)
    ]
    assert counts == [35_000, 35_000]
    long = torch.empty(1).expand(2, 1, 1 << 16, 1)  # 2^32 scores a head
    rows = [
        len(each.rows) for each in split_chunks(ScoreInputs(long, long, long[0, 0, :1]), long, Tiles(room=1 << 40), False)
    ]
    assert sum(rows) == 2 << 16
    assert max(rows) < 1 << 15
    half = long[:, :, : (1 << 15) - 64]
    assert len(split_chunks(ScoreInputs(half, long, half[0, 0, :1]), long, Tiles(room=1 << 40), False)) == 1
    assert not saves_scores(
        ScoreInputs(long, long, long[0, 0, :1]), long, Tiles(room=1 << 40, saved_scores=1e9), hides=False
    )
