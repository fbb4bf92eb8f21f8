import math

import pytest
import torch

from regard.decoding.penalties import UNSEEN, cover, normalise


def test_the_length_penalty_divides_by_a_power_of_the_length():
    assert normalise(-6.0, 4, 0.5) == -3.0
    assert normalise(-6.0, 4, 1.0) == -1.5
    assert normalise(-6.0, 4, 0.0) == -6.0


def test_nothing_has_length_one():
    assert normalise(0.0, 0, 1.0) == 0.0


def test_a_key_that_got_half_a_token_costs_log_two():
    # the second row: log min(0.5, 1) + log min(1.5, 1) + log min(1, 1)
    assert cover(torch.tensor([[1.0, 1.0, 1.0], [0.5, 1.5, 1.0]])).tolist() == pytest.approx([0.0, math.log(0.5)])


def test_padding_costs_nothing():
    keep = torch.tensor([[True, True, False]])
    assert cover(torch.tensor([[1.0, 0.5, 0.0]]), keep).tolist() == pytest.approx([math.log(0.5)])


def test_a_key_that_was_never_looked_at_costs_much_but_not_everything():
    assert cover(torch.tensor([[0.0, 1.0]])).tolist() == pytest.approx([math.log(UNSEEN)])
