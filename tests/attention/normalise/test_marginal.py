import math

import torch
from torch.testing import assert_close

from regard.attention import Attention, Marginal, Softmax


def test_as_a_stage_it_is_softmax():
    scores = torch.tensor([[[[0.0, math.log(3.0), 9.0], [9.0, 9.0, 9.0]]]])
    allowed = torch.tensor([[[[True, True, False], [False, False, False]]]])
    assert_close(Marginal()(scores, allowed)[0, 0], torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]))
    assert_close(Marginal()(scores), Softmax()(scores))
    assert Marginal().sums_to_one


def test_by_its_own_name_an_attention_reads_the_soft_context():
    attention = Attention(3, score="additive", normalise="marginal")
    source = torch.randn(1, 4, 3)
    attended = attention(torch.randn(1, 2, 3), attention.remember(source), weights=True)
    assert_close(attended.context, attended.weights[0] @ source)


def test_it_is_told_apart_from_softmax():
    assert Marginal() != Softmax()
    assert str(Marginal()) == "Marginal()"
