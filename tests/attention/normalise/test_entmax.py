import re
from decimal import Decimal, localcontext

import pytest
import torch
from torch.autograd import gradcheck

from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax


def row(*scores: float) -> torch.Tensor:
    return torch.tensor(scores)[None, None, None]


def test_two_keys_can_be_worked_by_hand():
    # x² + (x - ½)² = 1 for scores 1 apart, so x = (½ + √1.75) / 2 = 0.91144
    torch.testing.assert_close(Entmax()(row(1.0, 0.0)).flatten(), torch.tensor([0.830719, 0.169281]))


def test_at_one_and_a_half_a_key_two_below_the_best_gets_exactly_zero():
    assert Entmax()(row(2.0, 0.0, -1.0)).flatten().tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.7, 2.0, 3.0])
def test_equal_scores_share_equally(alpha):
    torch.testing.assert_close(Entmax(alpha)(row(7.0, 7.0, 7.0, 7.0)).flatten(), torch.full((4,), 0.25))


def test_alpha_two_is_sparsemax():
    scores = torch.randn(2, 3, 4, 9)
    torch.testing.assert_close(Entmax(2.0)(scores), Sparsemax()(scores))


def test_alpha_near_one_is_nearly_softmax():
    scores = torch.randn(2, 3, 4, 9)
    torch.testing.assert_close(Entmax(1.001)(scores), Softmax()(scores), atol=2e-3, rtol=0)


def test_the_support_lies_between_that_of_softmax_and_that_of_sparsemax():
    scores = row(2.0, 1.2, 0.4, -0.5)
    support = [int((normalise(scores) > 0).sum()) for normalise in (Softmax(), Entmax(1.5), Sparsemax())]
    assert support == [4, 3, 2]


def test_the_sort_and_newtons_method_agree():
    scores = 2 * torch.randn(2, 3, 4, 9, dtype=torch.float64)
    learned = Entmax(1.5, learn=True).double()  # a learned alpha is solved for by Newton's method
    torch.testing.assert_close(learned(scores), Entmax(1.5)(scores))


@pytest.mark.parametrize("alpha", [1.5, 1.7])
def test_what_is_not_allowed_is_left_out_and_a_query_that_sees_nothing_gets_zeros(alpha):
    scores = torch.tensor([[[[9.0, 1.0, 0.0], [1.0, 2.0, 3.0]]]], requires_grad=True)
    allowed = torch.tensor([[[[False, True, True], [False, False, False]]]])
    weights = Entmax(alpha)(scores, allowed)
    torch.testing.assert_close(weights[0, 0, 0, 1:], Entmax(alpha)(row(1.0, 0.0)).flatten())
    assert weights[0, 0, 0, 0] == 0
    assert weights[0, 0, 1].tolist() == [0.0, 0.0, 0.0]
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 0, 1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0])
def test_large_scores_are_no_trouble(alpha):
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        weights = Entmax(alpha)(row(1e4, 1e4, -1e4).to(dtype))
        assert weights.dtype == dtype
        torch.testing.assert_close(weights.float().flatten(), torch.tensor([0.5, 0.5, 0.0]))


def test_each_head_learns_an_alpha_of_its_own():
    normalise = Entmax(1.5, learn=True, heads=2)
    assert normalise.raw.shape == (2,)
    torch.testing.assert_close(normalise.alpha.flatten(), torch.tensor([1.5, 1.5]))
    normalise(row(1.0, 0.5, 0.0).expand(1, 2, 1, 3))[:, 1].square().sum().backward()
    assert normalise.raw.grad[0] == 0
    assert normalise.raw.grad[1] > 0  # a larger alpha is sparser, and so has the larger squares


def test_the_gradient_of_alpha_is_the_slope_of_the_weights():
    normalise, scores = Entmax(1.4, learn=True).double(), row(1.0, 0.5, 0.0).double()
    normalise(scores)[..., 0].sum().backward()
    step = 1e-5
    with torch.no_grad():
        ends = []
        for sign in (1, -1):
            normalise.raw += sign * step
            ends.append(normalise(scores)[..., 0].item())
            normalise.raw -= sign * step
    assert normalise.raw.grad.item() == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)


def test_an_alpha_that_is_not_learned_is_no_parameter():
    assert list(Entmax(1.5).parameters()) == []


def test_it_says_what_it_is():
    assert repr(Entmax(1.3, learn=True)) == "Entmax(alpha=1.3, learn=True)"


@pytest.mark.parametrize("alpha", [1.0, 0.5, -2.0])
def test_an_alpha_of_one_or_less_is_refused(alpha):
    with pytest.raises(ValueError, match=re.escape(f"Entmax needs alpha above 1, got {alpha}; alpha 1 is Softmax")):
        Entmax(alpha)


def test_an_alpha_to_learn_has_to_start_below_two():
    text = "Entmax learns alpha between 1 and 2, got 2.0 to start from; 1.5 is in the middle"
    with pytest.raises(ValueError, match=re.escape(text)):
        Entmax(2.0, learn=True)


def solve(scores, alpha):
    """Weights by bisection in 50 digits."""
    with localcontext(prec=50):
        power, raised = 1 / (Decimal(alpha) - 1), [(Decimal(alpha) - 1) * Decimal(score) for score in scores]
        low, high = max(raised) - 1, max(raised)
        for _ in range(150):
            middle = (low + high) / 2
            total = sum((score - middle) ** power for score in raised if score > middle)
            low, high = (middle, high) if total >= 1 else (low, middle)
        return [float((score - low) ** power) if score > low else 0.0 for score in raised]


@pytest.mark.parametrize("alpha", [1.0001, 1.01, 1.1, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0])
def test_single_precision_has_the_weights_of_any_alpha(alpha):
    torch.manual_seed(0)
    scores = torch.cat(
        [torch.randn(3, 20) * scale for scale in (0.1, 1.0, 10.0)] + [-0.1 * torch.arange(20.0)[None], torch.zeros(1, 20)]
    )
    weights = Entmax(alpha)(scores[None, None])[0, 0]
    expected = torch.tensor([solve(line, alpha) for line in scores.tolist()])
    torch.testing.assert_close(weights, expected, rtol=0, atol=5e-7)
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(scores)), rtol=0, atol=5e-7)


@pytest.mark.parametrize("alpha", [1.0001, 1.1, 1.5, 2.0, 3.0, 4.0, 6.0])
def test_single_precision_has_the_gradient_of_any_alpha(alpha):
    """ds = w (g - Σ w g / Σ w) with w = a^(2-α), from the weights in double precision."""
    torch.manual_seed(0)
    scores, flow = torch.randn(1, 1, 30, 20), torch.randn(1, 1, 30, 20)
    found = torch.autograd.grad(Entmax(alpha)(leaf := scores.requires_grad_()), leaf, flow)[0].double()
    weights = Entmax(alpha)(scores.detach().double())
    slopes = torch.where(weights > 0, weights.clamp_min(1e-300) ** (2 - alpha), 0.0)
    expected = slopes * (flow - (slopes * flow).sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True))
    largest = expected.abs().amax(-1, keepdim=True) + 0.01
    assert ((found - expected).abs() / largest).max() < 2e-4


@pytest.mark.parametrize("alpha", [1.3, 1.5, 3.0])
def test_autograd_agrees_with_differences(alpha):
    torch.manual_seed(0)
    assert gradcheck(Entmax(alpha), torch.randn(1, 2, 3, 5, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("normalise", [Entmax(1.3), Entmax(), Entmax(3.0), Entmax(1.4, learn=True)], ids=str)
def test_a_second_derivative_is_refused(normalise):
    scores = torch.randn(1, 1, 2, 4, requires_grad=True)
    (first,) = torch.autograd.grad(normalise(scores).square().sum(), scores, create_graph=True)
    with pytest.raises(RuntimeError, match=r"Entmax has no second derivative: its gradient cannot be differentiated again"):
        first.sum().backward()


def test_a_learned_alpha_has_no_second_derivative_either():
    normalise = Entmax(1.4, learn=True)
    (first,) = torch.autograd.grad(normalise(torch.randn(1, 1, 2, 4)).square().sum(), normalise.raw, create_graph=True)
    with pytest.raises(RuntimeError, match="Entmax has no second derivative"):
        first.sum().backward()
