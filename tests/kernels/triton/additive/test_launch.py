import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import launch


def test_the_keys_of_one_query_are_split_into_whole_tiles():
    device = torch.device("cpu")  # which counts as two processors
    assert launch.count_keys_per_program(1, 128, 16, 4, device, 64) == 16
    assert launch.count_keys_per_program(1, 1000, 16, 4, device, 64) == 128
    assert launch.count_keys_per_program(1, 1000, 16, 8, device, 64) == 64
    assert launch.count_keys_per_program(1, 1000, 16, 8, device, 3) == 336
    assert launch.count_keys_per_program(100, 1000, 16, 4, device, 64) == 1008
