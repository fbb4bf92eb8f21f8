import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/norm.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.masked_norm import moments

IMAGE = torch.tensor([[[1.0, 3.0, 5.0, 7.0, 9.0, 100.0], [2.0, 2.0, 2.0, 4.0, 4.0, 100.0]]])
KEEP = torch.tensor([[1, 1, 1, 1, 1, 0]], dtype=torch.uint8)


def gathered(tiles=3):
    counts, means, squares = torch.empty(1, tiles), torch.empty(1, tiles, 2), torch.empty(1, tiles, 2)
    moments.gather[1, tiles](IMAGE, KEEP, counts, means, squares, 2, 6, 12, 6, 1, TILE=2, WIDE=2)
    return counts, means, squares


def test_a_program_leaves_the_mean_and_the_squares_of_what_it_was_given():
    counts, means, squares = gathered()
    assert counts.tolist() == [[2, 2, 1]]
    assert means.tolist() == [[[2, 2], [6, 3], [9, 4]]]
    assert squares.tolist() == [[[2, 0], [2, 2], [0, 0]]]


def test_channels_by_themselves_have_a_mean_and_a_variance_each():
    mean, variance, total = torch.empty(1, 2), torch.empty(1, 2), torch.empty(1)
    moments.merge[1, 1](*gathered(), mean, variance, total, 3, 2, 2, TILES=2, WIDE=2, ALONE=True)
    assert mean.tolist() == [pytest.approx([5, 2.8])]
    assert variance.tolist() == [pytest.approx([8, 0.96])]
    assert total.tolist() == [5]


def test_a_group_has_one_mean_and_one_variance():
    mean, variance, total = torch.empty(1, 2), torch.empty(1, 2), torch.empty(1)
    moments.merge[1, 1](*gathered(), mean, variance, total, 3, 2, 2, TILES=2, WIDE=2, ALONE=False)
    numbers = IMAGE[0, :, :5]
    assert mean.tolist() == [pytest.approx([float(numbers.mean())] * 2)]
    assert variance.tolist() == [pytest.approx([float(numbers.var(correction=0))] * 2)]
