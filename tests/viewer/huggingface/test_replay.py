"""A beam search found again from its scores, worked by hand."""

import pytest
import torch

from regard.viewer.huggingface.replay import replay

END = 2
STEPS = [
    torch.tensor([[-1.0, -2.0, -5.0], [-9.0, -9.0, -9.0]]),  # only the first row exists yet
    torch.tensor([[-3.0, -3.5, -1.0], [-0.5, -4.0, -6.0]]),
]


def test_the_best_that_have_not_ended_go_on_and_the_ended_stand_behind_them():
    tree = replay(STEPS, [END])
    assert [(row.parent, row.token) for row in tree.steps[0]] == [(0, 0), (0, 1)]
    # row 0 has -1, row 1 has -2: ended -1-1 = -2; going on -2-0.5 = -2.5, then -1-3 = -4
    assert [(row.parent, row.token, row.score) for row in tree.steps[1]] == [(1, 0, -2.5), (0, 0, -4.0), (0, 2, -2.0)]
    assert tree.parents().tolist() == [[0, 0, -1], [1, 0, 0]]
    assert tree.scores().tolist() == [[-1.0, -2.0, 0.0], [-2.5, -4.0, -2.0]]
    assert tree.ended().tolist() == [[False, False, False], [False, False, True]]


@pytest.mark.parametrize(
    ("tokens", "rows", "end"),
    [
        ([0, 2], [0, 0], (1, 2)),
        ([1, 0], [0, 1], (1, 0)),
        ([1], [0], (0, 1)),
        ([0, 1], [0, 0], None),  # was not among the best
        ([0, 0], [0, 1], None),  # row 1 wrote another token
    ],
)
def test_a_hypothesis_is_found_by_its_tokens_and_rows(tokens, rows, end):
    assert replay(STEPS, [END]).find(tokens, rows) == end


def test_rows_that_do_not_exist_are_nobody():
    tree = replay([torch.tensor([[-1.0, -2.0], [-1.0, -2.0], [-1.0, -2.0]])], [1])
    assert tree.parents().tolist() == [[0, -1, -1, 0]]
    assert tree.ended().tolist() == [[False, False, False, True]]
