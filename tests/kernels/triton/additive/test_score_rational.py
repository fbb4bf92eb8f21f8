from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import operator


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("queries", [1, 3])
def test_far_from_zero_the_sum_counts_and_not_its_parts(queries):
    query, key, value = torch.zeros(1, 1, queries, 3), torch.zeros(1, 1, 5, 3), torch.randn(1, 1, 5, 4)
    query[..., 0], key[..., 0] = 60.0, torch.tensor([-59.5, -60.0, -61.0, 90.0, -1e30])
    key[0, 0, :, 1], key[0, 0, :, 2] = torch.linspace(-39, 39, 5), torch.linspace(-30, 40, 5)
    v = torch.tensor([[1.0, -2.0, 0.5]])

    def run(kernel, dtype):
        leaves = [each.detach().to(dtype).requires_grad_() for each in (query, key, v)]
        scores = (torch.tanh(leaves[0][:, :, :, None] + leaves[1][:, :, None]) @ leaves[2][0]) if kernel is None else None
        context = (
            scores.softmax(-1) @ value.to(dtype) if kernel is None else kernel(leaves[0], leaves[1], value, leaves[2])[0]
        )
        return [context, *torch.autograd.grad(context.square().sum(), leaves)]

    for found, expected in zip(run(operator.attention, torch.float32), run(None, torch.float64), strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("size", [10.4, 10.6])
def test_up_to_the_end_of_its_range_the_rational_form_holds_and_beyond_the_other(size):
    query = torch.tensor([[[[size, -size, size, size], [0.5, -size, size, -0.5]]]])
    key = torch.tensor([[[[size, -size, size, size], [0.5 - size, size, 0.0, size]]]])
    v = torch.tensor([1.0, 3.0, -2.0, 0.5])
    expected = (torch.tanh(query[:, :, :, None] + key[:, :, None]) @ v)[0, 0]
    torch.testing.assert_close(operator.scores(query, key, v[None])[0, 0], expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("down", "across"), [(1, 16), (4, 8), (16, 2)])
def test_however_threads_are_laid_over_a_tile_the_scores_are_the_same(monkeypatch, down, across):
    query, key, v = torch.randn(1, 1, 18, 5), torch.randn(1, 1, 20, 5), torch.randn(1, 5)
    key[0, 0, 17] = 25.0
    expected = (torch.tanh(query[:, :, :, None] + key[:, :, None]) @ v[0])[0, 0]
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, down=down, across=across))
    torch.testing.assert_close(operator.scores(query, key, v)[0, 0], expected)
