import math

import torch

from regard.attention.normalise.sigmoid import Sigmoid


def row(*scores: float) -> torch.Tensor:
    return torch.tensor(scores)[None, None, None]


def test_each_key_is_judged_alone():
    torch.testing.assert_close(Sigmoid()(row(0.0, math.log(3), -math.log(3))), row(0.5, 0.75, 0.25))


def test_the_bias_is_added_to_every_score():
    torch.testing.assert_close(Sigmoid(bias=-math.log(3))(row(0.0, math.log(3))), row(0.25, 0.5))


def test_what_is_not_allowed_gets_nothing_and_changes_nobody_else():
    allowed = torch.tensor([[[[True, False], [False, False]]]])
    scores = row(0.0, 5.0).expand(1, 1, 2, 2)
    assert Sigmoid()(scores, allowed)[0, 0].tolist() == [[0.5, 0.0], [0.0, 0.0]]


def test_large_scores_are_no_trouble():
    assert Sigmoid()(row(1e4, -1e4)).flatten().tolist() == [1.0, 0.0]


def test_its_shares_need_not_sum_to_one():
    assert not Sigmoid.sums_to_one
