import re

import pytest
import torch

from regard.attention.mechanisms.luong import Luong

FORMULAS = {
    "dot": lambda score, h, s: h @ s,
    "general": lambda score, h, s: h @ score.W.weight[0] @ s,
    "concat": lambda score, h, s: score.v.weight[0, 0] @ torch.tanh(score.W.weight[0] @ torch.cat((h, s))),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_three_scores_compare_the_state_with_the_source(name):
    attention = Luong(query=3, score=name)
    state, source = torch.randn(1, 1, 3), torch.randn(1, 4, 3)
    scores = torch.stack([FORMULAS[name](attention.score, state[0, 0], each) for each in source[0]])
    attended = attention(state, attention.remember(source), weights=True)
    torch.testing.assert_close(attended.weights[0, 0, 0], scores.softmax(0))
    torch.testing.assert_close(attended.context[0, 0], scores.softmax(0) @ source[0])


def test_the_fourth_looks_at_the_state_alone():
    attention = Luong(query=3, key=2, score="location")
    state, source = torch.randn(1, 1, 3), torch.randn(1, 4, 2)
    weights = attention(state, attention.remember(source), weights=True).weights
    torch.testing.assert_close(weights[0, 0, 0], (attention.score.W.weight[0, :4] @ state[0, 0]).softmax(0))


def test_general_is_what_it_does_unless_told():
    assert type(Luong(query=3, key=2).score).__name__ == "Bilinear"


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match=re.escape("Luong's scores are dot, general, concat, location, got 'additive'")):
        Luong(query=3, score="additive")
