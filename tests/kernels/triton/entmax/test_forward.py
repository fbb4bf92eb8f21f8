import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/simplex.py checks on a GPU", allow_module_level=True)

from regard.attention.normalise.entmax import Entmax
from regard.kernels.triton.entmax import launch
from regard.kernels.triton.entmax.launch import Alpha
from regard.kernels.triton.flash.arguments import Plan

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_one_query_and_three_keys_can_be_worked_by_hand():
    """Scores 0, 1/2 and -3: sparsemax gives 1/4, 3/4 and nothing, at a threshold 3/4 below the best."""
    query, keys = torch.ones(1, 1, 1, 1), torch.tensor([[[[0.0], [0.5], [-3.0]]]])
    values = torch.tensor([[[[4.0], [8.0], [1e9]]]])
    context, edges = launch.forward(query, keys, values, PLAN, Alpha(2.0))
    assert context.item() == pytest.approx(7)
    assert edges.flatten().tolist() == pytest.approx([0.5, -0.75, 1.0])


def test_keys_of_equal_scores_share_alike_at_one_half_each():
    """Entmax 1.5 of two equal scores: (0 - τ)² = 1/2."""
    data = torch.ones(1, 1, 2, 1)
    context, edges = launch.forward(data[:, :, :1], data, torch.tensor([[[[2.0], [4.0]]]]), PLAN, Alpha(1.5))
    assert context.item() == pytest.approx(3)
    assert edges[1].item() == pytest.approx(-(0.5**0.5))


@pytest.mark.parametrize("alpha", [1.05, 1.5, 2.0, 3.0])
def test_the_threshold_is_found_whatever_the_scores(alpha, monkeypatch):
    """Scores from nearly equal to far apart, over three tiles; up to alpha 2 by fewer passes than 32 halvings."""
    keys = torch.linspace(-1, 1, 40)[None, None, :, None]
    query = torch.tensor([1e-3, 0.1, 1.0, 10.0, 1000.0])[None, None, :, None]
    if alpha <= 2:
        monkeypatch.setattr(launch, "MAX_PASSES", 8)
    weights = launch.forward(query, keys, torch.eye(40)[None, None], PLAN, Alpha(alpha)).context
    expected = Entmax(alpha)(query.double() @ keys.double().mT)
    torch.testing.assert_close(weights.double(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1, 5), rtol=2e-5, atol=0)


@pytest.mark.parametrize("alpha", [1.0001, 1.01, 1.3, 2.0, 3.0])
def test_single_precision_is_exact_up_to_the_largest_alpha(alpha):
    torch.manual_seed(0)
    query, keys = torch.randn(1, 1, 32, 16), torch.randn(1, 1, 20, 16)
    weights = launch.forward(query, keys, torch.eye(20)[None, None], PLAN, Alpha(alpha)).context
    torch.testing.assert_close(weights.double(), Entmax(alpha)(query.double() @ keys.double().mT), rtol=0, atol=5e-6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1, 32), rtol=0, atol=5e-7)
