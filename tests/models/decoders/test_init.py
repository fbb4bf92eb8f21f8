import torch

from regard.attention import Attended
from regard.models.decoders import DecoderMemory, drop_weights, repeat_for_beams
from regard.tree import select


def test_a_source_is_spread_over_its_beams():
    vectors = torch.tensor([[1.0], [2.0]])
    assert repeat_for_beams(vectors, 2) is vectors
    assert repeat_for_beams(vectors, 6)[:, 0].tolist() == [1, 1, 1, 2, 2, 2]


def test_weights_are_shown_to_who_asked_for_them():
    attended = {"decoder.cross": Attended(torch.ones(1, 1, 2), torch.ones(1, 1, 1, 3))}
    assert drop_weights(attended, weights=True) == attended
    quiet = drop_weights(attended, weights=False)["decoder.cross"]
    assert quiet.weights is None
    assert quiet.context is attended["decoder.cross"].context


def test_what_is_remembered_is_a_tree():
    remembered = DecoderMemory(
        {}, (torch.tensor([[[1.0]], [[2.0]]]),), torch.tensor([[3.0], [4.0]]), torch.tensor([[5], [6]])
    )
    found = select(remembered, torch.tensor([1]))
    assert (found.initial[0].tolist(), found.summary.tolist(), found.tokens.tolist()) == ([[[2]]], [[4]], [[6]])
