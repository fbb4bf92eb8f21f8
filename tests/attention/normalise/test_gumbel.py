import math
import re

import pytest
import torch

from regard.attention.normalise.gumbel import Gumbel
from regard.attention.normalise.hard import sample_gumbel

QUARTERS = [0.0, math.log(3.0)]  # softmax: 1/4, 3/4


def row(*scores: float) -> torch.Tensor:
    return torch.tensor(scores)[None, None, None]


def test_in_evaluation_the_first_of_the_best_gets_everything_and_nothing_is_drawn():
    before = torch.get_rng_state()
    assert Gumbel().eval()(row(1.0, 3.0, 3.0)).flatten().tolist() == [0, 1, 0]
    assert torch.equal(before, torch.get_rng_state())


def test_while_training_keys_are_drawn_as_often_as_softmax_says_whatever_tau_is():
    draws = 20_000
    for tau in (0.1, 5.0):
        weights = Gumbel(tau)(row(*QUARTERS).expand(1, 1, draws, 2))
        assert ((weights == 0) | (weights == 1)).all()
        assert (weights.sum(-1) == 1).all()
        assert abs(weights[..., 1].mean().item() - 0.75) < 4 * math.sqrt(0.25 * 0.75 / draws)


@pytest.mark.parametrize("tau", [0.5, 1.0, 2.0])
def test_the_gradient_is_that_of_a_softmax_of_the_noisy_scores(tau):
    scores, direction = torch.randn(2, 1, 3, 4, requires_grad=True), torch.randn(2, 1, 3, 4)
    torch.manual_seed(5)
    weights = Gumbel(tau)(scores)
    torch.manual_seed(5)
    drawn = sample_gumbel(scores)
    assert torch.equal(weights.argmax(-1), (scores + drawn).argmax(-1))
    soft = ((scores + drawn) / tau).softmax(-1)
    found, expected = (torch.autograd.grad((each * direction).sum(), scores)[0] for each in (weights, soft))
    torch.testing.assert_close(found, expected)
    assert found.any()


def test_what_is_not_allowed_is_never_drawn_and_a_query_that_sees_nothing_learns_nothing():
    allowed = torch.tensor([[[[True, False, True], [False, False, False]]]]).expand(50, 1, 2, 3)
    scores = row(0.0, 50.0, 1.0).expand(50, 1, 2, 3).clone().requires_grad_()
    weights = Gumbel()(scores, allowed)
    assert not weights[..., 1].any()
    assert not weights[:, :, 1].any()
    (weights * torch.randn_like(weights)).sum().backward()
    assert scores.grad.isfinite().all()
    assert not scores.grad[..., 1].any()
    assert not scores.grad[:, :, 1].any()
    assert scores.grad[:, :, 0].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_weights_keep_the_precision_and_loud_scores_stay_finite(dtype):
    scores = torch.tensor([1e4, -1e4, 9e3], dtype=dtype)[None, None, None].requires_grad_()
    weights = Gumbel(0.1)(scores)
    assert weights.dtype == dtype
    assert weights.flatten().tolist() == [1, 0, 0]
    weights[..., 0].sum().backward()
    assert scores.grad.isfinite().all()


def test_without_keys_nothing_is_drawn():
    assert Gumbel()(torch.zeros(2, 1, 3, 0)).shape == (2, 1, 3, 0)


@pytest.mark.parametrize("tau", [0.0, -1.0, math.nan])
def test_a_tau_that_is_not_above_zero_is_refused(tau):
    with pytest.raises(ValueError, match=re.escape(f"Gumbel needs tau above 0, got {tau}; 1 is the usual choice")):
        Gumbel(tau)


def test_it_shows_its_temperature():
    assert repr(Gumbel(0.5)) == "Gumbel(tau=0.5)"
