"""Every rule of decoding, broken one at a time: the steps of an answer, and the tree of a search."""

import numpy as np
import pytest

from regard.viewer.io.check import check
from regard.viewer.trace import Choice

from .traces import BEAMS, forced, refuses, trace


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Choice(2, "x", -1.0), "example 0, step 0: it belongs to query 2, and the longest query axis has 2 places"),
        (Choice(0, "x", float("nan")), "the log-probability of 'x' must be a finite number, got nan"),
        (Choice(0, "x", -1.0, (("y", float("-inf")),)), "the log-probability of 'y' must be a finite number, got -inf"),
        (forced(Choice(0, "x", -1.0), token=7), "step 0, token: needs a text, got 7"),
    ],
)
def test_what_a_step_must_be(step, said):
    refuses(trace(steps=(step,)), said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parents": np.zeros(2, np.int32)}, "parents are (steps, width), got (2,)"),
        ({"parents": np.zeros((2, 2))}, "parents must be whole numbers with a sign, got float64"),
        ({"parents": np.array([[0, -1], [1, -1]])}, "step 1, row 0: its parent, row 1 of the step before, does not exist"),
        ({"parents": np.array([[0, 0], [2, -1]])}, "step 1, row 0: its parent, row 2"),
        ({"parents": np.array([[0, 0], [0, -2]])}, "step 1, row 1: a parent is a row, or -1 for nobody, got -2"),
        ({"scores": np.zeros((2, 3), np.float32)}, "scores (steps, width) must be (2, 2)"),
        ({"scores": np.array([[0, np.nan], [0, 0]], np.float32)}, "step 0, row 1: a score must be a finite number, got nan"),
        ({"tokens": (("a", "b"),)}, "tokens must be 2 steps of 2 rows"),
        ({"tokens": (("a", 3), ("b", ""))}, "beams, token: needs a text, got 3"),
        ({"ended": np.zeros((2, 2))}, "ended must be boolean, got float64"),
        ({"best": (1, 1)}, "the best answer is said to end at step 1, row 1, and nothing is there"),
        ({"best": (2, 0)}, "to end at step 2, row 0"),
        ({"name": "self"}, "their weights are of the attention 'self'; the example has cross"),
        ({"weights": np.ones((2, 2, 2), np.float32)}, "weights (steps, width, source) must be (2, 2, 3)"),
        ({"weights": np.full((2, 2, 3), np.nan, np.float32)}, "step 0, row 0, key 0: a weight must be a finite number"),
    ],
)  # fmt: skip
def test_what_beams_must_be(change, said):
    refuses(trace(beams=forced(BEAMS, **change)), "example 0, beams", said)


def test_a_row_that_is_nobodys_may_have_any_score():
    check(trace(beams=forced(BEAMS, scores=np.array([[-0.5, -1.0], [-1.5, -np.inf]], np.float32))))
    refuses(
        trace(beams=forced(BEAMS, scores=np.array([[-0.5, -np.inf], [-1.5, 0]], np.float32))),
        "step 0, row 1: a score must be a finite number, got -inf",
    )
