import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/norm.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.masked_norm import apply

IMAGE = torch.tensor([[[1.0, 5.0, 7.0]]])
KEEP = torch.tensor([[1, 1, 0]], dtype=torch.uint8)
MEAN, VARIANCE = torch.tensor([[3.0]]), torch.tensor([[4.0]])
WEIGHT, BIAS = torch.tensor([2.0]), torch.tensor([0.5])
SIZE = (1, 3, 1, 0.0, 3, 3, 1)
"""Channels, places, from row to row of the statistics, ε, and the steps."""


@pytest.mark.parametrize(
    ("rectify", "beside", "wanted"),
    [(False, False, [-1.5, 2.5, 0]), (True, False, [0, 2.5, 0]), (True, True, [0.5, 4.5, 0])],
)
def test_places_are_normed_weighed_and_rectified(rectify, beside, wanted):
    out = torch.full((1, 1, 3), 9.0)
    apply.forward[1, 2](
        IMAGE, KEEP, MEAN, VARIANCE, WEIGHT, BIAS, torch.full((1, 1, 3), 2.0), out, *SIZE,
        TILE=2, WIDE=1, RECTIFY=rectify, RESIDUAL=beside,
    )  # fmt: skip
    assert out.flatten().tolist() == wanted


def test_the_sums_are_of_the_gradients_that_pass():
    out, grad = torch.tensor([[[0.0, 2.5, 0.0]]]), torch.tensor([[[10.0, 3.0, 7.0]]])
    plain, leaning, around = torch.empty(1, 2, 1), torch.empty(1, 2, 1), torch.empty(1, 1, 3)
    apply.sums[1, 2](
        IMAGE, KEEP, MEAN, VARIANCE, out, grad, around, plain, leaning, *SIZE, TILE=2, WIDE=1, RECTIFY=True, RESIDUAL=True
    )
    assert plain.flatten().tolist() == [3, 0]
    assert leaning.flatten().tolist() == [3, 0]  # 3 times (5 - 3) / 2
    assert around.flatten().tolist() == [0, 3, 0]
    first, second = torch.empty(1, 1), torch.empty(1, 1)
    apply.merge[1, 1](torch.tensor([2.0]), plain, leaning, WEIGHT, first, second, 2, 1, 1, TILES=2, WIDE=1, ALONE=True)
    assert (first.item(), second.item()) == (3, 3)  # 2 times 3 over 2 places


def test_the_way_back_takes_off_what_the_statistics_took_part_in():
    out, grad, back = torch.tensor([[[0.0, 2.5, 0.0]]]), torch.tensor([[[10.0, 3.0, 7.0]]]), torch.empty(1, 1, 3)
    first = second = torch.tensor([[3.0]])
    apply.backward[1, 2](
        IMAGE, KEEP, MEAN, VARIANCE, WEIGHT, out, grad, first, second, back, *SIZE, TILE=2, WIDE=1, RECTIFY=True
    )
    assert back.flatten().tolist() == [0, 0, 0]  # 1/2 (0 - 3 + 3) and 1/2 (6 - 3 - 3): two numbers are normed to -1 and 1
