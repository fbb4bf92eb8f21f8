import re
from functools import partial
from itertools import product

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.mechanisms.luong import SCORES, WINDOWS, Luong
from regard.models.attention_factory import build_attention
from regard.models.decoders.recurrent import Recurrent

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
    assert_close(attended.weights[0, 0, 0], scores.softmax(0))
    assert_close(attended.context[0, 0], scores.softmax(0) @ source[0])


def test_the_fourth_looks_at_the_state_alone():
    attention = Luong(query=3, key=2, score="location")
    state, source = torch.randn(1, 1, 3), torch.randn(1, 4, 2)
    weights = attention(state, attention.remember(source), weights=True).weights
    assert_close(weights[0, 0, 0], (attention.score.W.weight[0, :4] @ state[0, 0]).softmax(0))


@pytest.mark.parametrize(("score", "window"), list(product(SCORES, WINDOWS)))
def test_four_scores_in_three_windows(score, window):
    found = Luong(query=3, score=score, window=window, width=1)
    options = {"score": SCORES[score], "width": 1}
    expected = {"local_m": LocalM(3, **options), "local_p": LocalP(3, **options)}.get(window)
    query, keep = torch.randn(2, 4, 3), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    attended = found(query, found.remember(Encoded(torch.randn(2, 5, 3), keep)), offset=0, weights=True)
    seen = (attended.weights > 0).sum(-1)
    assert (seen <= torch.tensor([5, 2])[:, None, None]).all()
    assert seen.max() == (5 if window == "global" else 3 if window == "local_m" else 2)
    assert found.positional == (window == "local_m")
    if expected is not None:
        expected.load_state_dict(found.state_dict())
        memory = expected.remember(Encoded(torch.randn(2, 5, 3), keep))
        assert_close(found(query, memory, offset=0).context, expected(query, memory, offset=0).context)


def test_general_and_global_is_what_it_does_unless_told():
    found = Luong(query=3, key=2)
    assert type(found.score).__name__ == "Bilinear"
    assert found.centre is None
    assert [name for name, _ in found.named_parameters()] == ["score.W.weight"]
    assert Luong(query=3, key=2, impl="reference").impl == "reference"


@pytest.mark.parametrize("score", ["dot", "bilinear", "concat", "location"])
def test_our_names_are_understood_too(score):
    assert type(build_attention(f"luong+{score}", 4, 4).score).__name__ == score.capitalize()


@pytest.mark.parametrize(("score", "window"), list(product(SCORES, WINDOWS)))
def test_all_of_it_works_with_input_feeding(score, window):
    made = Recurrent(9, 4, 4, attention=partial(Luong, score=score, window=window, width=1), input_feeding=True).eval()
    keep, target = torch.tensor([[True] * 5, [True] * 2 + [False] * 3]), torch.tensor([[1, 4, 5], [1, 6, 2]])
    memory = made.remember(Encoded(torch.randn(2, 5, 4), keep, (torch.randn(2, 1, 4), torch.randn(2, 1, 4))))
    taught, state = made(target, memory), made.start(memory)
    for place, token in enumerate(target.unbind(1)):
        step = made.step(token, memory, state)
        state = step.state
        assert_close(step.output, taught.output[:, place])


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match=re.escape("Luong's scores are dot, general, concat, location, got 'additive'")):
        Luong(query=3, score="additive")


def test_an_unknown_window_is_refused():
    with pytest.raises(ValueError, match=re.escape("Luong's windows are global, local_m, local_p, got 'local'")):
        Luong(query=3, window="local")
