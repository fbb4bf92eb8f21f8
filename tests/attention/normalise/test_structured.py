import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard.attention import Sigmoid
from regard.attention.normalise.structured import Structured
from regard.models.attention_factory import build_attention


def chain(theta, heads=1):
    """A normaliser with this transition in every head."""
    made = Structured(heads)
    made.transition.data = torch.tensor(theta, dtype=torch.float64).expand(heads, 2, 2).clone()
    return made


def log(*numbers):
    return torch.tensor(numbers, dtype=torch.float64).log()


def test_two_keys_by_hand():
    """Out and out weigh 1, out and in 3, in and out 2·5, in and in 2·3·7: 56 together."""
    normalise = chain([[0.0, 0.0], [math.log(5), math.log(7)]])
    shares = normalise(log(2, 3)[None, None, None], None)
    assert_close(shares[0, 0, 0], torch.tensor([52 / 56, 45 / 56], dtype=torch.float64))


def test_one_key_has_no_neighbours():
    shares = chain([[3.0, -2.0], [1.0, 5.0]])(log(3)[None, None, None], None)
    assert_close(shares[0, 0, 0], torch.tensor([3 / 4], dtype=torch.float64))


def test_without_transitions_keys_are_judged_alone():
    scores = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    assert_close(chain([[0.0, 0.0], [0.0, 0.0]], heads=3)(scores, None), Sigmoid()(scores))


def test_neighbours_that_like_to_agree_close_a_gap_and_neighbours_that_do_not_open_one():
    scores = torch.tensor([-4.0, 2.0, -0.5, 2.0, -4.0], dtype=torch.float64)[None, None, None]
    agreeing, alone, differing = (chain([[a, 0.0], [0.0, a]])(scores, None)[0, 0, 0] for a in (1.0, 0.0, -1.0))
    assert alone[2] < 0.5 < agreeing[2]
    assert differing[2] < alone[2]
    assert agreeing[0] < 0.5  # the rest stays out


def test_keys_on_both_sides_of_a_hidden_one_are_neighbours():
    normalise = chain([[0.0, 0.0], [math.log(5), math.log(7)]])
    scores, allowed = log(2, 9, 3)[None, None, None], torch.tensor([True, False, True])[None, None, None]
    assert_close(normalise(scores, allowed)[0, 0, 0], torch.tensor([52 / 56, 0.0, 45 / 56], dtype=torch.float64))
    assert normalise(scores, allowed)[0, 0, 0, 1] == 0


def test_what_is_hidden_may_hold_anything():
    normalise = chain([[0.0, 1.0], [2.0, 3.0]])
    scores, allowed = torch.randn(1, 1, 2, 4, dtype=torch.float64), torch.tensor([True, False, True, False])
    other = scores.masked_fill(~allowed, math.nan).requires_grad_()
    shares = normalise(other, allowed[None, None, None])
    assert torch.equal(shares, normalise(scores, allowed[None, None, None]))
    shares.sum().backward()
    assert other.grad.isfinite().all()
    assert not other.grad[..., ~allowed].any()


def test_each_head_has_a_transition():
    normalise = Structured(heads=2).double()
    scores = torch.randn(1, 1, 3, 4, dtype=torch.float64).expand(-1, 2, -1, -1)
    shares = normalise(scores, None)
    assert not torch.allclose(shares[:, 0], shares[:, 1])
    one = chain(normalise.transition[1].tolist())
    assert_close(shares[:, 1:], one(scores[:, 1:], None))
    assert_close(shares[:, 1], one(scores, None)[:, 0])


def test_gradients_reach_scores_and_transitions_around_hidden_keys():
    normalise = Structured(heads=2).double()
    allowed = torch.rand(2, 2, 2, 4) < 0.6
    allowed[0, 0, 0], allowed[1, 1, 1] = False, True

    def shares(scores, transition):
        return functional_call(normalise, {"transition": transition}, (scores, allowed))

    assert gradcheck(shares, (torch.randn(2, 2, 2, 4, dtype=torch.float64, requires_grad=True), normalise.transition))


def one_by_one(scores, theta):
    """Messages from the left, from the first key to the last."""
    heard = [torch.zeros_like(scores[..., 0])]
    for key in range(scores.shape[-1] - 1):
        odds = scores[..., key] + heard[-1]
        inside, outside = torch.logaddexp(theta[0, 1], theta[1, 1] + odds), torch.logaddexp(theta[0, 0], theta[1, 0] + odds)
        heard.append(inside - outside)
    return torch.stack(heard, dim=-1)


def test_long_chains_with_scores_of_any_size_stay_exact_in_single_precision():
    scores = torch.randn(1, 1, 6, 2000) * torch.tensor([0.1, 1.0, 10.0, 100.0, 1e3, 1e4])[:, None]
    normalise = Structured()
    theta, wide = normalise.transition[0].double(), scores.double()
    right = one_by_one(wide.flip(-1), theta.mT).flip(-1)
    expected = torch.sigmoid(one_by_one(wide, theta) + wide + right)
    assert_close(normalise(scores, None).double(), expected, rtol=0, atol=5e-7)


def test_half_precision_is_computed_in_single():
    normalise, scores = Structured().bfloat16(), torch.randn(2, 1, 3, 300).bfloat16()
    shares = normalise(scores, None)
    assert shares.dtype == torch.bfloat16
    assert_close(shares, normalise.float()(scores.float(), None).bfloat16(), rtol=0, atol=0)


def test_no_keys_have_no_shares():
    assert Structured()(torch.empty(1, 1, 2, 0), None).shape == (1, 1, 2, 0)


def test_it_is_a_word_behind_any_score():
    made, source = build_attention("additive+structured", 4, 6), torch.randn(2, 5, 6)
    attended = made(torch.randn(2, 3, 4), made.remember(source), weights=True)
    assert type(made.normalise) is Structured
    assert_close(attended.context, attended.weights[:, 0] @ source)


def test_a_second_derivative_is_refused():
    normalise, scores = Structured(), torch.randn(1, 1, 2, 4, requires_grad=True)
    leaves = scores, normalise.transition
    firsts = torch.autograd.grad(normalise(scores).square().sum(), leaves, create_graph=True)
    for first in firsts:
        with pytest.raises(
            RuntimeError, match=r"Structured has no second derivative: its gradient cannot be differentiated"
        ):
            first.sum().backward(retain_graph=True)
