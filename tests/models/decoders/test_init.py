import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import Attended
from regard.models.decoders import Output, Remembered, shown, spread
from regard.models.types import select

TABLE = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])


def test_a_tied_output_compares_with_every_embedding():
    output = Output(2, vocabulary=3, embedding=2, tie=True)
    nn.init.constant_(output.bias, 0.5)
    assert_close(output(torch.tensor([[1.0, 1.0]]), TABLE), torch.tensor([[1.5, 2.5, 6.5]]))
    assert [name for name, _ in output.named_parameters()] == ["bias"]


def test_an_output_of_another_width_than_the_embedding_is_fitted_first():
    output = Output(4, vocabulary=3, embedding=2, tie=True)
    data = torch.randn(5, 4)
    assert_close(output(data, TABLE), data @ output.fit.weight.mT @ TABLE.mT)


def test_a_loose_output_has_its_own_matrix():
    output = Output(4, vocabulary=3, embedding=2, tie=False)
    data = torch.randn(2, 5, 4)
    assert_close(output(data, TABLE), data @ output.weight.mT)


def test_a_source_is_spread_over_its_beams():
    vectors = torch.tensor([[1.0], [2.0]])
    assert spread(vectors, 2) is vectors
    assert spread(vectors, 6)[:, 0].tolist() == [1, 1, 1, 2, 2, 2]


def test_weights_are_shown_to_who_asked_for_them():
    attended = {"decoder.cross": Attended(torch.ones(1, 1, 2), torch.ones(1, 1, 1, 3))}
    assert shown(attended, weights=True) == attended
    quiet = shown(attended, weights=False)["decoder.cross"]
    assert quiet.weights is None
    assert quiet.context is attended["decoder.cross"].context


def test_what_is_remembered_is_a_tree():
    remembered = Remembered({}, (torch.tensor([[[1.0]], [[2.0]]]),), torch.tensor([[3.0], [4.0]]), torch.tensor([[5], [6]]))
    found = select(remembered, torch.tensor([1]))
    assert (found.initial[0].tolist(), found.summary.tolist(), found.tokens.tolist()) == ([[[2]]], [[4]], [[6]])
