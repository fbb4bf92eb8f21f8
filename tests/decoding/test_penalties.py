import math

import pytest
import torch

from regard.decoding.penalties import MIN_COVERAGE, penalise_coverage, penalise_length


def test_the_length_penalty_divides_by_a_power_of_the_length():
    assert penalise_length(-6.0, 4, 0.5) == -3.0
    assert penalise_length(-6.0, 4, 1.0) == -1.5
    assert penalise_length(-6.0, 4, 0.0) == -6.0


def test_nothing_has_length_one():
    assert penalise_length(0.0, 0, 1.0) == 0.0


def test_a_key_that_got_half_a_token_costs_log_two():
    # the second row: log min(0.5, 1) + log min(1.5, 1) + log min(1, 1)
    assert penalise_coverage(torch.tensor([[1.0, 1.0, 1.0], [0.5, 1.5, 1.0]])).tolist() == pytest.approx(
        [0.0, math.log(0.5)]
    )


def test_padding_costs_nothing():
    keep = torch.tensor([[True, True, False]])
    assert penalise_coverage(torch.tensor([[1.0, 0.5, 0.0]]), keep).tolist() == pytest.approx([math.log(0.5)])


def test_a_key_that_was_never_looked_at_costs_much_but_not_everything():
    assert penalise_coverage(torch.tensor([[0.0, 1.0]])).tolist() == pytest.approx([math.log(MIN_COVERAGE)])
