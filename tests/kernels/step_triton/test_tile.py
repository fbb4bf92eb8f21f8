import torch

from regard.kernels.step_triton.tile import on, tile


def test_more_keys_are_more_warps_up_to_a_point():
    assert [tile(keys) for keys in (5, 16, 33, 128, 4096)] == [(16, 1), (16, 1), (64, 2), (128, 4), (128, 4)]


def test_on_a_cpu_there_is_nowhere_to_go():
    with on(torch.ones(1)) as where:
        assert where is None
