import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.local import Centre
from regard.attention.mechanisms.local_p import LocalP, PredictedCentre
from regard.models.attention_factory import build_attention
from regard.models.layers.beam_attention import attend_beams
from regard.tree import repeat

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind


def fixed(width, logit, **options):
    """Queries of 1 that all place their window at S sigmoid(logit), and find all keys alike."""
    found = LocalP(1, score="dot", width=width, **options)
    found.centre.W.weight.data.fill_(50.0)  # tanh(50) = 1
    found.centre.v.weight.data.fill_(logit)
    return found


def test_a_plain_case_can_be_worked_by_hand():
    # S = 4 and sigmoid(0) = 1/2, so p = 2; D = 2 and σ = 1; the keys from 0 to 4 are in the window, and 0 to 3 exist
    found, source = fixed(width=2, logit=0.0), torch.tensor([[[1.0], [1.0], [1.0], [1.0]]])
    attended = found(torch.ones(1, 1, 1), found.remember(source), weights=True)
    bell = torch.tensor([math.exp(-2), math.exp(-1 / 2), 1.0, math.exp(-1 / 2)])
    assert_close(attended.weights[0, 0, 0], bell / 4)
    assert_close(attended.context[0, 0, 0], bell.sum() / 4)


def test_the_window_reaches_one_width_to_either_side_of_a_centre_between_the_keys():
    # S = 4 and sigmoid(ln(7/3)) = 0.7, so p = 2.8; D = 1: keys 2 and 3, at -0.8 and 0.2 from it; σ = 1/2, so 2 σ² = 1/2
    found, source = fixed(width=1, logit=math.log(7 / 3)), torch.zeros(1, 4, 1)
    weights = found(torch.ones(1, 1, 1), found.remember(source), weights=True).weights[0, 0, 0]
    assert_close(weights, torch.tensor([0.0, 0.0, math.exp(-1.28) / 2, math.exp(-0.08) / 2]), atol=1e-5, rtol=0)


def test_the_length_of_a_source_leaves_its_padding_out():
    found = fixed(width=10, logit=0.0)
    keep = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    source = torch.zeros(2, 6, 1)
    weights = found(torch.ones(2, 1, 1), found.remember(Encoded(source, keep)), weights=True).weights[:, 0, 0]
    assert weights[0].argmax() == 3  # p = 6 / 2
    assert_close(weights[1], torch.tensor([math.exp(-1 / 50) / 2, 1 / 2, 0, 0, 0, 0]))  # p = 2 / 2, σ = 5


def test_weights_add_up_to_one_when_told_to():
    found = fixed(width=2, logit=0.0, renormalise=True)
    attended = found(torch.ones(1, 1, 1), found.remember(torch.ones(1, 4, 1)), weights=True)
    bell = torch.tensor([math.exp(-2), math.exp(-1 / 2), 1.0, math.exp(-1 / 2)])
    assert_close(attended.weights[0, 0, 0], bell / bell.sum())


@pytest.mark.parametrize("renormalise", [False, True])
def test_the_gradient_through_the_centre_is_right(renormalise):
    found = LocalP(3, 2, width=2, renormalise=renormalise).double()
    query, source = torch.randn(2, 3, 3, dtype=torch.float64), torch.randn(2, 6, 2, dtype=torch.float64)
    keep = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    W, v = (each.detach().clone().requires_grad_() for each in (found.centre.W.weight, found.centre.v.weight))

    def context(query, source, W, v):
        found_there = {"centre.W.weight": W, "centre.v.weight": v}
        memory = found.remember(Encoded(source, keep))
        return functional_call(found, found_there, (query, memory)).context

    assert gradcheck(context, (query.requires_grad_(), source.requires_grad_(), W, v))
    moved = torch.autograd.grad(context(query, source, W, v).sum(), (W, v))
    assert all(each.abs().sum() > 1e-3 for each in moved)


def test_descending_on_the_centre_moves_the_window_to_what_is_sought():
    found, source = LocalP(2, score="dot", width=4), torch.zeros(1, 12, 2)
    source[0, 9] = 1.0
    optimiser = torch.optim.Adam(found.centre.parameters(), lr=0.05)
    query = torch.tensor([[[1.0, -1.0]]])  # whose product with every key is zero: the place is all that there is to learn
    before = found.centre(query, torch.tensor([12]), 0).item()
    for _ in range(60):
        loss = -found(query, found.remember(source)).context.sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = found.centre(query, torch.tensor([12]), 0).item()
    assert abs(before - 9) > 1.5
    assert abs(after - 9) < 0.2


def test_it_does_not_matter_where_a_query_stands_so_beams_stand_side_by_side():
    found = LocalP(3)
    assert not found.positional
    assert LocalP(3, scope="causal").positional
    assert isinstance(found.centre, Centre)
    memory, query = found.remember(torch.randn(2, 5, 3)), torch.randn(6, 1, 3)
    expected = found(query, repeat(memory, 3), weights=True)
    beams = attend_beams(found, query, memory, position=4, weights=True)
    assert_close((beams.context, beams.weights), (expected.context, expected.weights))


def test_a_centre_is_a_real_number_between_the_ends_of_the_source():
    centre = PredictedCentre(3)
    query, lengths = 100 * torch.randn(2, 50, 3), torch.tensor([7, 3])
    places = centre(query, lengths, 0)
    expected = lengths[:, None] / (1 + torch.exp(-(torch.tanh(query @ centre.W.weight.mT) @ centre.v.weight[0])))
    assert_close(places, expected)
    assert places.min() > 0
    assert (places < lengths[:, None]).all()
    assert centre.bfloat16()(query.bfloat16(), lengths, 0).dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "score", "normalise"),
    [
        ("local_p", "Bilinear", "Softmax"),
        ("local_p+dot", "Dot", "Softmax"),
        ("local_p+additive+sparsemax", "Additive", "Sparsemax"),
        ("local_p+location", "Location", "Softmax"),
    ],
)
@pytest.mark.parametrize("key", [4, 6])
def test_it_is_built_by_a_word_with_any_score(name, score, normalise, key):
    found = build_attention(name, 4, key)
    assert type(found) is LocalP
    assert [type(each).__name__ for each in (found.score, found.normalise)] == [score, normalise]
    assert found(torch.randn(2, 3, 4), found.remember(torch.randn(2, 5, key))).context.shape == (2, 3, found.size)


@every_kind
@pytest.mark.parametrize("name", ["local_p", "local_p+additive+sparsemax"])
def test_it_works_in_every_decoder(name, kind):
    check_learning_and_padding(name, kind)
    check_steps_and_beams(name, kind)
