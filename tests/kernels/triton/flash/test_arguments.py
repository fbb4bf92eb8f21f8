import pytest
import torch

from regard.kernels.triton.flash import arguments
from regard.kernels.triton.flash.arguments import (
    MAX_STRIDE,
    Plan,
    build_number_arguments,
    build_tensor_arguments,
    build_tile_arguments,
    launch_fitting,
    pack_rows,
)

OutOfResources = pytest.importorskip("triton.runtime.errors", reason="Triton is for Linux").OutOfResources
PLAN = Plan(None, None, None, None, None, None, 3, -1, True, 0, 1.0, 0.5, 0.1, [64, 64, 4, 2])


def test_a_tensor_is_told_by_its_strides_and_rows_that_are_not_dense_are_copied():
    data = torch.arange(24.0).view(1, 2, 3, 4)
    assert pack_rows(data) == (data, 24, 12, 4)
    copied, *strides = pack_rows(data.mT)
    assert strides == [24, 12, 3]
    torch.testing.assert_close(copied, data.mT)
    single = torch.randn(1, 2, 1, 3).mT  # of rows of one number it does not matter how far apart numbers are
    assert pack_rows(single)[0].stride(2) == pack_rows(single)[3]


def test_rows_that_are_far_apart_are_put_side_by_side():
    near, far = (torch.empty_strided((2, 3, 4, 5), (0, 0, row, 1), device="meta") for row in (MAX_STRIDE - 1, MAX_STRIDE))
    assert pack_rows(near)[0] is near
    assert pack_rows(far)[1:] == (60, 20, 5)


def test_an_axis_of_one_serves_for_all():
    _, _, _, mask, _ = build_tensor_arguments(PLAN._replace(mask=torch.ones(1, 2, 1, 5, dtype=torch.bool)))
    assert mask[1:] == (0, 5, 0)


def test_numbers_and_sizes_are_those_of_the_tensors_and_tiles():
    query, keys, values = torch.empty(2, 4, 5, 6), torch.empty(2, 2, 7, 6), torch.empty(2, 2, 7, 33)
    assert build_number_arguments(query, keys, values, PLAN) == (3, -1, 1.0, 0.5, 0.1, 4, 2, 5, 7, 6, 33)
    assert build_tile_arguments(query, [32, 16, 4, 1]) == {
        "M": 32, "N": 16, "D": 16, "PRECISION": "ieee", "num_warps": 4, "num_stages": 1,
    }  # fmt: skip
    assert build_tile_arguments(query.half(), [32, 16, 4, 1])["PRECISION"] == "tf32"


def test_a_program_that_does_not_fit_starts_with_smaller_tiles(monkeypatch):
    monkeypatch.setattr("regard.kernels.runtime.tiles.TOO_LARGE", {})
    monkeypatch.setattr("regard.kernels.runtime.tiles.find_shared_memory", lambda device: 99 << 10)
    data, tried = torch.empty(1, 1, 2, 64), []

    def start(tiles):
        tried.append(tiles[:2])
        if tiles[3] > 1:
            raise OutOfResources(112 << 10, 99 << 10, "shared memory")

    launch_fitting("write_dkv", start, PLAN.tiles, data, data)
    assert tried == [[64, 64], [64, 32], [32, 32]]
    launch_fitting("write_dkv", start, PLAN.tiles, data, data)
    assert tried[3:] == [[32, 32]]
    assert (
        arguments.estimate_shared_memory("write_dkv", [64, 64, 4, 2], 64, 64, 4) == 96 << 10
    )  # fits, were it not for its stages
