"""A memory network of one hop, whose numbers are worked out by hand."""

from math import e

import pytest
import torch
from torch.testing import assert_close

from regard.config import Dropout
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.models.memory import LinearStart, MemoryNetwork, build

STORY = Stories(torch.tensor([[[4], [5], [0]]]), torch.tensor([[4]]), torch.tensor([[True, True, False]]))
SHARE = e / (e + 1)
"""Weight of the first sentence, whose score is 1; that of the second is 0."""


@pytest.fixture
def network():
    """Word 4 has A = (1, 0) and C = (2, 0); word 5 has A = (0, 1) and C = (0, 4)."""
    network = MemoryNetwork(6, 2, 2, hops=1, encoding="bag", temporal=False).eval()
    with torch.no_grad():
        network.encoder.embedding.weight[4:] = torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 4.0]])
        network.W.weight.copy_(torch.eye(2))
    return network


def test_a_hop_adds_what_it_reads_to_the_question(network):
    answer = network(STORY)
    assert_close(answer.hops, torch.tensor([[[SHARE, 1 - SHARE, 0.0]]]))
    assert_close(answer.logits, torch.tensor([[1 + 2 * SHARE, 4 * (1 - SHARE)]]))


def test_in_a_linear_start_the_scores_are_the_weights(network):
    answer = network(STORY, torch.tensor([True]))
    assert_close(answer.hops, torch.tensor([[[1.0, 0.0, 0.0]]]))
    assert_close(answer.logits, torch.tensor([[3.0, 0.0]]))


def test_half_of_the_state_is_rectified_where_it_is_nonlinear(network):
    network.nonlinear = True
    with torch.no_grad():
        network.encoder.embedding.weight[4] *= -1  # u = (-1, 0) and m_1 = (-1, 0) have the score 1 as before
    assert_close(network(STORY).logits, torch.tensor([[0.0, 4 * (1 - SHARE)]]))


def test_the_linear_normaliser_is_a_softmax_in_the_other_rows_and_leaves_out_padding():
    scores, allowed = torch.tensor([[[[2.0, 0.0, 7.0]]]] * 2), torch.tensor([[[[True, True, False]]]] * 2)
    weights = LinearStart(torch.tensor([True, False]))(scores, allowed)
    assert weights[0].flatten().tolist() == [2.0, 0.0, 0.0]
    assert_close(weights[1].flatten(), torch.tensor([e**2 / (e**2 + 1), 1 / (e**2 + 1), 0.0]))


def test_sentences_older_than_any_in_training_have_the_oldest_age():
    network = MemoryNetwork(6, 2, 2, limit=2).eval()
    assert network.age(torch.ones(1, 4, dtype=torch.bool)).tolist() == [[1, 1, 1, 0]]


def test_settings_reach_the_network():
    model = AnswerModel(hidden_size=4, hops=2, tying="layerwise", temporal=False, temporal_noise=0.3, nonlinear=True)
    network = build(model, Dropout(0.1, 0.2, 0.3), 6, 5, 8, 6)
    assert (network.hops, network.adjacent, network.T, network.noise, network.nonlinear) == (2, False, None, 0.3, True)
    assert (network.drop_embedding.p, network.drop_output.p, network.dropout) == (0.1, 0.2, 0.3)
    assert network.W.out_features == 5
    assert build(AnswerModel(hidden_size=4, hops=2), Dropout(), 6, 5, 8, 6).T.shape == (8, 3, 4)
