import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/parity.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.bias_relu import backward as kernel
from regard.kernels.triton.bias_relu.backward import mask_gradient


def test_what_came_through_lets_its_gradient_back_and_the_rest_does_not():
    flowing = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    sums = mask_gradient(flowing, torch.tensor([[0.5, 0.0, 0.1], [0.0, 0.0, 2.0]]))
    assert flowing.tolist() == [[1, 0, 3], [0, 0, 6]]
    assert sums.tolist() == [1, 0, 9]


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (5, 70), (33, 16)])
def test_rows_and_columns_that_fill_no_whole_tile_will_do(monkeypatch, rows, size):
    monkeypatch.setattr(kernel, "TALL", 4)
    monkeypatch.setattr(kernel, "WIDE", 32)
    came, flowing = torch.randn(rows, size).relu(), torch.randn(rows, size)
    expected = flowing * (came > 0)
    sums = mask_gradient(flowing, came)
    assert torch.equal(flowing, expected)
    torch.testing.assert_close(sums, expected.sum(0))
