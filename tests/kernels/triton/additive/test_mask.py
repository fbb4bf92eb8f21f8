import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.arguments import Dropout


@pytest.mark.parametrize("queries", [1, 5])
def test_dropout_takes_the_same_weights_away_on_the_way_back(queries):
    seed = torch.tensor([5])
    query, key, v = torch.randn(2, 1, queries, 3), torch.randn(2, 1, 17, 3), torch.randn(1, 3)
    ones = torch.eye(17).expand(2, 1, 17, 17)
    dropped = Dropout(0.4, seed)
    context, weights = operator.attention(query, key, ones, v, dropped=dropped, weights=torch.float32)
    factor = context / weights
    assert set(factor.mul(0.6).round(decimals=4).flatten().tolist()) == {0.0, 1.0}
    assert factor.eq(0).float().mean() == pytest.approx(0.4, abs=0.2 if queries == 1 else 0.1)
    value = torch.randn(2, 1, 17, 4)

    def run(kernel, dtype):
        leaves = [each.detach().to(dtype).requires_grad_() for each in (query, key, value, v)]
        if kernel:
            found = operator.attention(*leaves, dropped=dropped)[0]
        else:
            q, k, values, w = leaves
            scores = (torch.tanh(q[:, :, :, None] + k[:, :, None]) @ w[:, None, :, None])[..., 0]
            found = (scores.softmax(-1) * factor.to(dtype)) @ values
        return [found, *torch.autograd.grad(found.square().sum(), leaves)]

    for found, expected in zip(run(True, torch.float32), run(False, torch.float64), strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=2e-6)
