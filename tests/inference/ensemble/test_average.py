import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.inference.ensemble.average import AVERAGES, blend, logits, probabilities

ONE, TWO = torch.tensor([[0.8, 0.2, 0.0]]).log(), torch.tensor([[0.2, 0.5, 0.3]]).log()


def test_probabilities_are_averaged_as_they_are():
    assert_close(probabilities([ONE, TWO], [0.75, 0.25]).exp(), torch.tensor([[0.65, 0.275, 0.075]]))


def test_logits_are_averaged_geometrically_and_scaled_to_sum_to_one():
    found = logits([ONE, TWO], [0.5, 0.5]).exp()
    parts = [math.sqrt(0.8 * 0.2), math.sqrt(0.2 * 0.5), 0.0]
    assert_close(found, torch.tensor([[each / sum(parts) for each in parts]]))


@pytest.mark.parametrize("average", [probabilities, logits])
def test_a_member_without_weight_is_not_heard_even_where_it_finds_things_impossible(average):
    assert_close(average([ONE, TWO], [0.0, 1.0]), TWO)


@pytest.mark.parametrize("average", [probabilities, logits])
def test_members_that_agree_are_as_one(average):
    logs = torch.randn(2, 3, 7, dtype=torch.float64).log_softmax(-1)
    assert_close(average([logs, logs, logs], [0.5, 0.25, 0.25]), logs)


def test_what_encoders_read_is_averaged_number_by_number():
    keep = torch.tensor([[True, False]])
    one = Encoded(torch.ones(1, 2, 3), keep, (torch.zeros(1, 1, 3),), None, torch.tensor([[5, 0]]))
    two = Encoded(torch.full((1, 2, 3), 5.0), keep, (torch.full((1, 1, 3), 4.0),), None, torch.tensor([[5, 0]]))
    found = blend([one, two], [0.75, 0.25])
    assert_close(found.data, torch.full((1, 2, 3), 2.0))
    assert_close(found.final[0], torch.ones(1, 1, 3))
    assert found.keep is keep
    assert found.tokens.tolist() == [[5, 0]]


def test_there_are_three_averages():
    assert list(AVERAGES) == ["probabilities", "logits", "memories"]
