"""An entity network of one block, whose numbers are worked out by hand."""

from math import exp

import pytest
import torch
from torch.testing import assert_close

from regard.config import Dropout
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.models.entity import EntityNetwork, build

STORY = Stories(torch.tensor([[[4], [5], [0]]]), torch.tensor([[4]]), torch.tensor([[True, True, False]]))
ROOT = 5**0.5
SECOND = 1 / (1 + exp(-(4 / ROOT + 2)))
"""Gate of the second sentence; that of the first is a half."""


@pytest.fixture
def network():
    """The key is (1, 0), the sentences are (0, 1) and (2, 0); U = V = 0, W and R are identities, and H doubles."""
    network = EntityNetwork(6, 2, 2, blocks=1, words=3).eval()
    with torch.no_grad():
        network.embedding.weight[4:] = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
        network.keys.copy_(torch.tensor([[1.0, 0.0]]))
        for linear, factor in ((network.U, 0.0), (network.V, 0.0), (network.W, 1.0), (network.R, 1.0), (network.H, 2.0)):
            linear.weight.copy_(factor * torch.eye(2))
    return network


def test_a_sentence_is_written_as_far_as_its_gate_opens(network):
    blocks, gates = network.write(network.story(network.embed(STORY.data)), STORY)
    assert_close(gates, torch.tensor([[[0.5, SECOND, 0.0]]]))
    first = torch.tensor([2 / ROOT + 2 * SECOND, 1 / ROOT])
    assert_close(blocks, (first / first.norm())[None, None])


def test_the_answer_is_read_from_the_block_and_shares_are_those_of_the_gates(network):
    block = network.write(network.story(network.embed(STORY.data)), STORY)[0][0, 0]
    answer = network(STORY, weights=True)
    assert_close(answer.logits, (torch.tensor([0.0, 1.0]) + 2 * block)[None])
    assert_close(answer.hops, torch.tensor([[[0.5, SECOND, 0.0]]]) / (0.5 + SECOND))
    assert answer.inner["blocks"].tolist() == [[[[1.0]]]]
    assert not network(STORY).inner


def test_settings_reach_the_network():
    network = build(AnswerModel(kind="entity", hidden_size=4, blocks=7), Dropout(0.1, 0.2), 6, 3, 16, 5)
    assert network.keys.shape == (7, 4)
    assert network.story.mask.shape == network.question.mask.shape == (5, 4)
    assert (network.drop_embedding.p, network.drop_output.p, network.R.out_features) == (0.1, 0.2, 3)
