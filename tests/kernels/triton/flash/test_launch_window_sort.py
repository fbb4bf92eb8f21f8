import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch_window_sort as module
from regard.kernels.triton.flash.launch_window_sort import (
    BINS,
    FAR,
    MIN_BIN,
    OUTSIDE,
    compute_bin_width,
    pad_length,
    sort_by_counting,
    sort_queries,
    sort_with_torch,
)

SHAPES = [(1, 1, 1), (2, 23, 16), (3, 37, 40), (2, 300, 777), (1, 513, 70), (2, 40, 3 * MIN_BIN * BINS)]
KINDS = {
    "anywhere, some outside": lambda keys, at: (keys + 60) * at - 30,
    "all in one place": lambda keys, at: torch.full_like(at, keys / 2),
    "close together": lambda keys, at: keys / 3 + 20 * at,
    "all behind the end": lambda keys, at: keys + 1000 * at,
    "at whole stretches": lambda keys, at: MIN_BIN * (keys / MIN_BIN * at).round(),
    "some no number": lambda keys, at: torch.where(at < 0.3, torch.nan, keys * at),
    "some infinite": lambda keys, at: torch.where(at < 0.3, torch.inf, torch.where(at > 0.7, -torch.inf, keys * at)),
}


@pytest.mark.parametrize("way", [sort_by_counting, sort_with_torch], ids=["counted", "sorted"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("batch", "queries", "keys"), SHAPES, ids=str)
def test_queries_stand_by_the_stretch_of_keys_that_their_windows_are_in_and_equals_as_they_come(
    batch, queries, keys, kind, way
):
    centres, wide = kind(keys, torch.rand(batch, queries)), compute_bin_width(keys)
    found = way(centres.clone().requires_grad_(), keys)
    assert not found.sorted_centres.requires_grad
    for row, centre in enumerate(centres.tolist()):
        at = [0 if each != each else int(min(max(each, 0), keys - 1)) // wide for each in centre]
        order = sorted(range(queries), key=at.__getitem__)
        assert found.order[row].tolist() == order
        assert found.ends[row].tolist() == [sum(each <= end for each in at) for end in range((keys - 1) // wide + 1)]
        near = centres[row, order].clamp(-OUTSIDE, OUTSIDE)
        torch.testing.assert_close(found.sorted_centres[row, :queries], near, rtol=0, atol=0, equal_nan=True)
        assert (found.sorted_centres[row, queries:] == -FAR).all()


def test_stretches_are_a_power_of_two_and_no_more_than_a_program_counts():
    sizes = [1, MIN_BIN * BINS, MIN_BIN * BINS + 1, 2 * MIN_BIN * BINS, 100 * BINS]
    assert [compute_bin_width(keys) for keys in sizes] == [MIN_BIN, MIN_BIN, 2 * MIN_BIN, 2 * MIN_BIN, 128]


def test_rows_are_of_whole_tiles():
    assert [pad_length(queries) for queries in (1, 64, 65)] == [64, 64, 128]


def test_short_rows_are_counted_and_long_ones_sorted(monkeypatch):
    asked = []
    for name in ("sort_by_counting", "sort_with_torch"):
        way = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *told, way=way: asked.append(way.__name__) or way(*told))
    monkeypatch.setattr(module, "MAX_COUNTED", 10)
    sort_queries(torch.rand(1, 10), 5), sort_queries(torch.rand(1, 11), 5)
    assert asked == ["sort_by_counting", "sort_with_torch"]


def test_far_rows_are_sorted_by_wider_numbers(monkeypatch):
    monkeypatch.setattr(module, "BINS", 1 << 17)
    centres = torch.tensor([[5.0, 1e9], [2e6, 3.0]])
    assert sort_with_torch(centres, 1 << 20).order.tolist() == [[0, 1], [1, 0]]


@pytest.mark.unhooked
def test_what_it_promises_the_compiler_about_shapes_is_what_it_gives():
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(module.sort_operator, (40 * torch.rand(2, 30), 37), test_utils=tests)
