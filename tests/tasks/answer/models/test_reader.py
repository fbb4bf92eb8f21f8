import torch
from torch.testing import assert_close

from regard.config import AttentionPart, Dropout
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.models.reader import build


def stories():
    data = torch.tensor([[[4, 5, 6], [7, 4, 0], [8, 0, 0]], [[5, 9, 0], [10, 6, 4], [0, 0, 0]]])
    return Stories(data, torch.tensor([[4, 6, 0], [5, 7, 8]]), (data != 0).any(-1))


def make(**settings):
    return build(AnswerModel(kind="reader", hidden_size=4, **settings), Dropout(0.1, 0.2, 0.3), 12, 3, 16, 6).eval()


def test_the_weight_of_a_sentence_is_the_sum_of_those_of_its_words():
    answer = make()(stories(), weights=True)
    words = answer.inner["words"][:, 0, 0]
    assert_close(words.sum(-1), torch.ones(2))
    assert words[1, 5:].abs().max() == 0
    for row, counts in enumerate(([3, 2, 1], [2, 3, 0])):
        parts = words[row, : sum(counts)].split(counts)
        assert_close(answer.hops[row, 0], torch.stack([part.sum() for part in parts]))


def test_a_boundary_between_sentences_is_not_read():
    network, source = make(), stories().select_rows([0])
    joined = Stories(torch.tensor([[[4, 5, 6, 7, 4, 8]]]), source.question, torch.tensor([[True]]))
    assert_close(network(joined).logits, network(source).logits)
    assert not network(source).inner


def test_settings_reach_the_network():
    network = make(layers=2, cell="lstm", attention=AttentionPart("dot"))
    assert len(network.story.layers) == 2
    assert type(network.story.layers[0]) is torch.nn.LSTM
    assert (network.drop_output.p, network.output.out_features) == (0.2, 3)
