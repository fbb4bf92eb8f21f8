"""The kernel in Triton's interpreter."""

import os

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decoding_gpu.py checks on a GPU", allow_module_level=True)

from regard.data.special_tokens import EOS
from regard.decoding.engines.cuda.beam import Beam
from regard.decoding.engines.cuda.beam_triton import launch

CPU = torch.device("cpu")
STATE = ("tokens", "parents", "scores", "ended", "figures", "over")


def pair(sentences, beams, best, each, alpha):
    """Two searches that begin alike."""
    both = [Beam(sentences, beams, best, each, 16, 4, CPU) for _ in range(2)]
    for choice in both:
        choice.begin(np.arange(3, 3 + sentences), alpha)
    return both


def ways(rows, each, vocabulary=9):
    """The likeliest tokens of some rows, EOS among them more often than not."""
    logits = torch.randn(rows, vocabulary).mul(2).index_fill(1, torch.tensor([0, 1]), -torch.inf)
    logits[:, EOS] += 2.0
    return logits.log_softmax(-1).topk(each)


@pytest.mark.parametrize(("beams", "best", "alpha"), [(2, 1, 1.0), (3, 2, 0.6)])
def test_turn_by_turn_it_does_what_the_tensors_do(beams, best, alpha):
    one, other = pair(2, beams, best, beams + 1, alpha)
    for number in range(4):
        values, tokens = ways(2 * beams, beams + 1)
        clock = torch.tensor([number])
        one.turn(values, tokens, clock, clock)
        launch(other, values, tokens, clock, clock)
        for name in STATE:
            mine, right = getattr(other, name), getattr(one, name)
            torch.testing.assert_close(mine, right, rtol=0, atol=0, msg=f"{name} of turn {number}: {mine} for {right}")
    assert (one.figures[:, 2] == EOS).any()
    assert one.over.any()


def test_of_equally_good_ways_on_the_leftmost_comes_first():
    one, other = pair(1, 2, 1, 3, 1.0)
    clock = torch.tensor([0])
    values, tokens = torch.full((2, 3), -1.5), torch.tensor([[5, 2, 4], [6, 3, 7]])
    for number in range(2):
        one.turn(values, tokens, clock + number, clock + number)
        launch(other, values, tokens, clock + number, clock + number)
    assert other.figures[1, 2].tolist() == one.figures[1, 2].tolist() == [[5, 2, 4, 6]]
    assert other.tokens.tolist() == one.tokens.tolist() == [5, 4]


def test_nan_is_told_in_the_first_score():
    _, other = pair(1, 2, 1, 3, 1.0)
    values, tokens = ways(2, 3)
    values[0, 1] = float("nan")
    launch(other, values, tokens, torch.tensor([0]), torch.tensor([0]))
    assert other.figures[0, 0, 0, 0].isnan()
