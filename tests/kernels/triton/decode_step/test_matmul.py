"""The kernel in Triton's interpreter."""

import os

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decoding_gpu.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.decode_step.matmul import LayerNormArguments, MatmulTile, fused_matmul


@pytest.mark.parametrize(("rows", "size", "columns"), [(1, 24, 40), (5, 50, 33)])
@pytest.mark.parametrize("all_around", [False, True])
def test_norm_bias_bend_and_sum_are_part_of_the_product(rows, size, columns, all_around):
    data, weights = torch.randn(rows, size) + 2, (torch.randn(columns, size), torch.randn(columns))
    if not all_around:
        found = fused_matmul(data, (weights[0], None), tile=MatmulTile(16, 16, 1))
        torch.testing.assert_close(found, F.linear(data, weights[0]))
        return
    norm, residual = LayerNormArguments(torch.randn(size), torch.randn(size), 1e-5), torch.randn(rows, columns)
    found = fused_matmul(data, weights, norm=norm, residual=residual, relu=True, tile=MatmulTile(16, 16, 1))
    normed = F.layer_norm(data, (size,), *norm)
    torch.testing.assert_close(found, F.linear(normed, *weights).relu() + residual)


def test_more_than_a_program_holds_is_refused():
    weights, norm = (torch.ones(4, 2048), None), LayerNormArguments(torch.ones(2048), torch.ones(2048), 1e-5)
    with pytest.raises(
        ValueError, match="product needs 8 rows or fewer, and 1024 numbers where they are normed, got 9 of 2048"
    ):
        fused_matmul(torch.ones(9, 2048), weights)
    with pytest.raises(ValueError, match="got 1 of 2048"):
        fused_matmul(torch.ones(1, 2048), weights, norm=norm)


def test_half_precision_is_summed_in_single():
    half = torch.bfloat16
    data, matrix, residual = torch.randn(2, 512).to(half), torch.randn(20, 512).to(half), torch.randn(2, 20).to(half)
    found = fused_matmul(data, (matrix, None), residual=residual, tile=MatmulTile(16, 64, 1))
    exact = data.double() @ matrix.double().mT + residual.double()
    assert found.dtype == half
    assert (found.double() - exact).abs().max() <= 2**-8 * exact.abs().max()
