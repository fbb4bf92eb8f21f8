"""The kernel in Triton's interpreter."""

import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decoding_gpu.py checks on a GPU", allow_module_level=True)

from regard.decoding.engines.cuda.add_norm import add_norm
from regard.decoding.engines.cuda.add_norm_triton import launch


@pytest.mark.parametrize("size", [8, 129])
def test_it_finds_what_pytorch_finds(size):
    data, found = torch.randn(3, size), torch.randn(3, size)
    weight, bias = torch.randn(size), torch.randn(size)
    for mine, right in zip(launch(data, found, weight, bias, 1e-5), add_norm(data, found, weight, bias, 1e-5), strict=True):
        torch.testing.assert_close(mine, right)


def test_in_half_precision_sums_are_taken_in_single():
    half = [
        torch.randn(2, 64).bfloat16(),
        torch.randn(2, 64).bfloat16(),
        torch.randn(64).bfloat16(),
        torch.randn(64).bfloat16(),
    ]
    total, normed = launch(*half, 1e-5)
    assert total.dtype == normed.dtype == torch.bfloat16
    torch.testing.assert_close(total, half[0] + half[1])
    exact = torch.nn.functional.layer_norm(total.double(), (64,), half[2].double(), half[3].double(), 1e-5)
    assert (normed.double() - exact).abs().max() <= 2**-8 * exact.abs().max()
