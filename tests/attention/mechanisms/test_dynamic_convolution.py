import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.dynamic_convolution import DynamicConvolution, beta_binomial

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind


def small(query=3, key=None, **options):
    return DynamicConvolution(query, key, **{"filters": 2, "kernel": 3, "prior_length": 3} | options)


def test_a_plain_case_can_be_worked_by_hand():
    attention = small(1, prior_length=2, alpha=1.0, beta=1.0)
    for parameter in attention.parameters():
        parameter.data.zero_()
    weights = attention(torch.zeros(1, 2, 1), attention.remember(torch.zeros(1, 3, 1)), weights=True).weights[0, 0]
    # a prior of 1/2 to stay and 1/2 to move, and nothing else: 1/2 1/2, then 1/4 1/2 1/4; out of reach it is 1e-6
    expected = torch.tensor([[0.5, 0.5, 1e-6], [0.25, 0.5, 0.25]])
    assert_close(weights, expected, atol=2e-6, rtol=0)


def test_the_default_prior_moves_on_by_one_key_on_average():
    prior = beta_binomial(10, 0.1, 0.9)
    assert math.isclose(sum(prior), 1.0)
    assert math.isclose(sum(k * share for k, share in enumerate(prior)), 1.0)  # n alpha / (alpha + beta)
    assert_close(torch.tensor(beta_binomial(2, 1.0, 1.0)), torch.full((3,), 1 / 3))


def formula(attention, query, keys):
    """The equations of the paper, with loops over keys and taps."""
    score, half = attention.score, attention.score.kernel // 2
    previous, weights = [1.0] + [0.0] * (keys - 1), []
    for state in query:
        dynamic = score.G(torch.tanh(score.W(state))).view(score.filters, score.kernel)
        energies = []
        for j in range(keys):
            near = torch.tensor([previous[j + r] if 0 <= j + r < keys else 0.0 for r in range(-half, half + 1)])
            f = torch.stack([filter @ near for filter in score.F.weight])
            g = torch.stack([filter @ near for filter in dynamic])
            prior = sum(share.item() * previous[j - k] for k, share in enumerate(score.prior) if j >= k)
            hidden = torch.tanh(score.U.weight @ f + score.T.weight @ g + score.T.bias)
            energies.append(score.v.weight[0] @ hidden + math.log(max(prior, 1e-6)))
        weights.append(torch.stack(energies).softmax(0))
        previous = weights[-1].tolist()
    return torch.stack(weights)


@pytest.mark.parametrize(("kernel", "prior_length"), [(3, 3), (1, 4), (5, 1)])
def test_it_is_the_formula_of_the_paper(kernel, prior_length):
    attention = small(3, 2, kernel=kernel, prior_length=prior_length, hidden=4)
    query, source = torch.randn(1, 4, 3), torch.randn(1, 5, 2)
    attended = attention(query, attention.remember(source), weights=True)
    weights = formula(attention, query[0], 5)
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])
    assert_close(attended.state[0], weights[-1])


def test_it_begins_at_the_first_key_that_is_not_padding():
    attention, keep = small(), torch.tensor([[False, True, True, True], [False] * 4])
    memory = attention.remember(Encoded(torch.randn(2, 4, 3), keep))
    assert attention.start(memory).tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    assert not attention(torch.randn(2, 2, 3), memory, weights=True).weights[1].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": 4}, "DynamicConvolution needs an odd kernel, which has a middle, got 4"),
        ({"alpha": 0.0}, "an alpha and beta above 0, got 3, 0.0 and 0.9"),
    ],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("dynamic_convolution", kind)
    check_steps_and_beams("dynamic_convolution", kind)
