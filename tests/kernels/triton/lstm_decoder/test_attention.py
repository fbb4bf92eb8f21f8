import math
import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/recurrent.py checks on a GPU", allow_module_level=True)

from regard.attention import attend
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score.scaled_dot import ScaledDot
from regard.kernels.triton.lstm_decoder import attention as module
from regard.kernels.triton.lstm_decoder.attention import launch_attention, launch_attention_backward

KEEP = torch.tensor([[True] * 5, [True, True, False, False, False], [False] * 5])


def test_one_look_can_be_worked_by_hand():
    keys, values = torch.tensor([[[0.0], [math.log(3)]]]), torch.tensor([[[4.0], [8.0]]])
    shares, context = torch.empty(1, 2), torch.empty(1, 1)
    launch_attention(torch.ones(1, 1), keys, values, None, 1.0, shares, context)
    assert shares[0].tolist() == pytest.approx([0.25, 0.75])
    assert context.item() == pytest.approx(7)


@pytest.mark.parametrize("keep", [None, KEEP], ids=["all", "padded"])
@pytest.mark.parametrize("tile", [64, 8192])
def test_a_look_and_its_way_back_are_those_of_the_stages(monkeypatch, keep, tile):
    monkeypatch.setattr(module, "TILE", tile)
    size, value = 40, 35  # more than one chunk each, and not whole ones
    query, keys, values = torch.randn(3, size), torch.randn(3, 5, size), torch.randn(3, 5, value)
    leaf = query.clone().requires_grad_()
    scope = Everywhere() if keep is None else Padding(keep)
    asked = {"score": ScaledDot(0.3), "scope": scope, "impl": "reference", "weights": True}
    expected = attend(leaf[:, None, None], keys[:, None], values[:, None], **asked)
    both, shares = torch.full((3, size + value), 7.0), torch.empty(3, 5)
    both[:, :size] = query
    launch_attention(both[:, :size], keys, values, keep, 0.3, shares, both[:, size:])
    torch.testing.assert_close(both[:, size:], expected.context[:, 0, 0].detach())
    torch.testing.assert_close(shares, expected.weights[:, 0, 0].detach())
    flowing, outer = torch.randn(2, 3, size + value).unbind(0)
    d_context, d_scores, d_query = torch.empty(3, value), torch.empty(3, 5), torch.empty(3, size)
    launch_attention_backward(shares, keys, values, keep, 0.3, flowing, outer, d_context, d_scores, d_query)
    total = flowing + outer
    torch.testing.assert_close(d_context, total[:, size:])
    found = torch.autograd.grad(expected.context, leaf, total[:, None, None, size:])[0]
    torch.testing.assert_close(d_query, found + total[:, :size], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.einsum("bs,bsd->bd", d_scores, keys), found, rtol=1e-4, atol=1e-5)


def test_what_may_not_be_seen_may_hold_anything():
    keys, values = torch.randn(3, 5, 4), torch.randn(3, 5, 4)
    keys[~KEEP], values[~KEEP] = torch.nan, torch.nan
    shares, context = torch.empty(3, 5), torch.empty(3, 4)
    launch_attention(torch.randn(3, 4), keys, values, KEEP, 1.0, shares, context)
    assert shares.isfinite().all()
    assert context.isfinite().all()
    assert not context[2].any()
