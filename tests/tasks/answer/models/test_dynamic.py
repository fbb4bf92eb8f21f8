"""Parts of a dynamic memory network, whose numbers are worked out by hand."""

from math import tanh

import torch
from torch.testing import assert_close

from regard.config import Dropout
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.models.dynamic import AttentionGRU, DynamicMemory, Interaction, build


def fill(parameter, values):
    with torch.no_grad():
        parameter.copy_(torch.tensor(values))


def test_the_score_is_that_of_products_and_distances():
    score = Interaction(1)
    fill(score.hidden.weight, [[0.1, 0.2, 0.3, 0.4]])
    fill(score.hidden.bias, [0.05])
    fill(score.output.weight, [[2.0]])
    fill(score.output.bias, [0.5])
    fact, question, memory = 2.0, 3.0, -1.0
    result = score(torch.tensor([[[[question, memory]]]]), score.prepare(torch.tensor([[[[fact]]]])))
    assert_close(result, torch.tensor([[[[2 * tanh(0.1 * 6 - 0.2 * 2 + 0.3 * 1 + 0.4 * 3 + 0.05) + 0.5]]]]))


def test_gates_take_the_place_of_the_update_gate():
    gru = AttentionGRU(1)
    for linear in (gru.W, gru.U):  # a reset gate of a half, and new states that add up
        fill(linear.weight, [[0.0], [1.0]])
        fill(linear.bias, [0.0, 0.0])
    first = 0.5 * tanh(1.0)
    second = 0.25 * tanh(2.0 + 0.5 * first) + 0.75 * first
    state = gru(torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([[0.5, 0.25, 0.0]]))
    assert_close(state, torch.tensor([[second]]))


def test_sentences_are_fused_from_both_sides_and_padding_is_zero():
    network = DynamicMemory(9, 2, 4, encoding="bag").eval()
    network.backwards.load_state_dict(network.forwards.state_dict())
    data = torch.tensor([[[4, 5], [6, 0], [4, 5], [0, 0]]])
    fused = network.fuse(Stories(data, torch.tensor([[4]]), (data != 0).any(-1)))
    assert_close(fused[:, 0], fused[:, 2])
    assert fused[:, 3].abs().max() == 0
    assert not torch.allclose(fused[:, 0], fused[:, 1])


def test_settings_reach_the_network():
    network = build(AnswerModel(hidden_size=4, hops=5, sentence="bag"), Dropout(0.1, 0.2), 9, 3, 16, 6)
    assert (len(network.update), network.encoder.encoding, network.output.out_features) == (5, "bag", 3)
    assert (network.drop_embedding.p, network.drop_output.p) == (0.1, 0.2)
