"""Counts of tiled kernels, worked out by hand."""

import pytest

from regard.attention.cost import MULTIPROCESSORS
from regard.attention.workload import Workload
from regard.kernels.runtime import tile_work
from regard.kernels.runtime.tile_work import count_extras, count_multiprocessors, count_tiles, round_to_power, round_up

PLAIN = Workload(
    batch=2, heads=4, key_heads=4, queries=100, keys=300, size=40, value=64, element=2, precision="half", gradient="forward",
    visible=1.0, mask=60_000, padded=False, windowed=False, rest=False, dropout=False, weights=False, statistics=(),
)  # fmt: skip


def test_sizes_are_rounded_up():
    assert [round_up(size, 8) for size in (0, 1, 8, 9)] == [0, 8, 8, 16]
    assert [round_to_power(size) for size in (0, 1, 16, 17, 64, 65)] == [16, 16, 16, 32, 64, 128]
    assert round_to_power(3, least=2) == 4


def test_work_is_counted_in_whole_tiles(monkeypatch):
    monkeypatch.setattr(tile_work, "count_multiprocessors", lambda: 10)
    counts = count_tiles(PLAIN, 64, 128)
    programs, steps = 2 * 4 * 2, 3
    pairs = programs * 64 * steps * 128
    assert counts["elements"] == pytest.approx(pairs / 1e6)
    assert counts["products"] == pytest.approx(pairs * (64 + 64) / 1e6)
    assert counts["depth"] == pytest.approx(2 * steps)  # sixteen programs on ten multiprocessors take two turns
    queries, memory = 2 * 4 * 100, 2 * 4 * 300
    assert counts["bytes"] == pytest.approx(2 * (queries * 40 + memory * (40 + 64) + queries * 64) / 1e6)


def test_a_share_of_the_keys_is_one_tile_at_least():
    whole, half, little = (count_tiles(PLAIN, 64, 128, share) for share in (1.0, 0.5, 0.01))
    assert half["products"] == pytest.approx(whole["products"] / 2)
    assert little["elements"] == pytest.approx(whole["elements"] / 3)
    assert whole["bytes"] == little["bytes"]


def test_a_plain_request_has_no_extras():
    assert not any(count_extras(PLAIN, 3.0).values())


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"dropout": True}, {"dropped": 3.0}),
        ({"padded": True}, {"masked": 3.0}),
        ({"padded": True, "windowed": True}, {"masked": 3.0}),
        ({"rest": True}, {"mask": 0.06, "mask_call": 1.0}),
        ({"statistics": ("entropy", "max")}, {"measured": 6.0}),
        ({"statistics": ("top_1",)}, {}),
        ({"statistics": ("top_4", "received")}, {"again": 12.0, "again_call": 4.0}),
        ({"statistics": ("uniform", "spread")}, {"measured": 3.0, "again": 3.0, "again_call": 1.0}),
    ],
)
def test_what_is_asked_for_beyond_the_context_is_counted(change, counts):
    extras = count_extras(PLAIN._replace(**change), 3.0)
    assert {name: value for name, value in extras.items() if value} == counts


def test_without_a_gpu_the_multiprocessors_are_those_of_the_measured_one(monkeypatch):
    monkeypatch.setattr(tile_work.torch.cuda, "is_available", lambda: False)
    assert count_multiprocessors() == MULTIPROCESSORS
