import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import launch


def test_the_keys_of_one_query_are_split_into_whole_tiles():
    device = torch.device("cpu")  # which counts as two processors, and so as eight programs
    assert launch.share(1, 128, 16, device) == 16
    assert launch.share(1, 1000, 16, device) == 128
    assert launch.share(100, 1000, 16, device) == 1008
