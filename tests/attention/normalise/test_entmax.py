import re

import pytest
import torch

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


def test_the_sort_and_the_bisection_agree():
    scores = 2 * torch.randn(2, 3, 4, 9, dtype=torch.float64)
    learned = Entmax(1.5, learn=True).double()  # a learned alpha is found by bisection
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
