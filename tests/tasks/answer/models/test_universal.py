import torch
from torch.testing import assert_close

from regard.config import Dropout
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.models.universal import UniversalTransformer, build


def stories():
    data = torch.tensor([[[4, 5, 6], [7, 4, 0], [8, 0, 0]], [[5, 9, 0], [10, 6, 4], [0, 0, 0]]])
    return Stories(data, torch.tensor([[4, 6, 0], [5, 7, 8]]), (data != 0).any(-1))


def test_the_question_stands_in_front_of_sentences_with_their_ages():
    network, source = UniversalTransformer(12, 3, 4, heads=2, words=3, limit=2).eval(), stories()
    data, keep = network.embed(source)
    assert keep.tolist() == [[True] * 4, [True] * 3 + [False]]
    table, mask = network.embedding.weight, network.story.mask
    assert_close(data[0, 2], table[7] * mask[0] + table[4] * mask[1] + network.T[1])
    assert_close(data[0, 1], (table[[4, 5, 6]] * mask).sum(0) + network.T[1])  # two sentences behind it, and T has two ages
    assert_close(data[1, 2], (table[[10, 6, 4]] * mask).sum(0) + network.T[0])
    assert_close(data[1, 0], (table[[5, 7, 8]] * network.question.mask).sum(0))


def test_steps_share_one_layer_and_hops_are_formed_where_they_are_asked_for():
    two, three = (UniversalTransformer(12, 3, 4, heads=2, hops=hops).eval() for hops in (2, 3))
    count = [sum(parameter.numel() for parameter in network.parameters()) for network in (two, three)]
    assert count[1] - count[0] == 4
    plain, traced = three(stories()), three(stories(), weights=True)
    assert plain.hops is None
    assert traced.hops.shape == (2, 3, 3)
    assert_close(plain.logits, traced.logits, atol=1e-5, rtol=1e-5)


def test_settings_reach_the_network():
    model = AnswerModel(kind="universal", hidden_size=4, hops=5, heads=1, temporal_noise=0.3)
    network = build(model, Dropout(0.1, 0.2, 0.3), 12, 3, 16, 6)
    assert (network.S.shape, network.T.shape, network.story.mask.shape) == ((5, 4), (16, 4), (6, 4))
    assert (network.noise, network.drop.p, network.output.out_features) == (0.3, 0.1, 3)
