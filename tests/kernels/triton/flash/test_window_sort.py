import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch_window_sort


@pytest.mark.parametrize(("tile", "step"), [(32, 4), (32, 1), (64, 16)], ids=str)
@pytest.mark.parametrize("queries", [1, 64, 200])
def test_any_tile_finds_the_places_of_its_queries_among_all_of_the_row(tile, step, queries, monkeypatch):
    monkeypatch.setattr(launch_window_sort, "TILE", tile)
    monkeypatch.setattr(launch_window_sort, "STEP", step)
    keys = 300
    centres = torch.stack([keys * torch.rand(queries), torch.full((queries,), 7.0), 90 + 20 * torch.rand(queries)])
    for one, other in zip(
        launch_window_sort.sort_by_counting(centres, keys), launch_window_sort.sort_with_torch(centres, keys), strict=True
    ):
        assert torch.equal(one, other)


def test_a_tile_shorter_than_whole_places_leaves_none_out(monkeypatch):
    monkeypatch.setattr(launch_window_sort, "TILE", 32)
    placed = launch_window_sort.sort_by_counting(torch.rand(2, 5), 9).sorted_centres
    assert (placed[:, 5:] == -launch_window_sort.FAR).all()
