import math

import torch
from torch.testing import assert_close

from regard.attention import Softmax
from regard.attention.local_window import GaussianWindow, WindowScope


def test_a_scope_hides_what_is_further_from_the_centre_than_its_width():
    scope = WindowScope(torch.tensor([[0.0, 1.6], [2.0, 2.0]]), width=1)
    allowed = scope.allowed(2, 1, 2, 4, 0, torch.device("cpu"))
    assert allowed[:, 0].int().tolist() == [[[1, 1, 0, 0], [0, 1, 1, 0]], [[0, 1, 1, 1], [0, 1, 1, 1]]]


def test_shares_fall_off_as_a_gaussian():
    dimmed = GaussianWindow(Softmax(), torch.tensor([[1.0]]), width=2)
    weights = dimmed(torch.zeros(1, 1, 1, 4), None)
    assert_close(weights[0, 0, 0], torch.tensor([math.exp(-0.5), 1.0, math.exp(-0.5), math.exp(-2)]) / 4)
    assert not dimmed.sums_to_one


def test_a_window_is_found_by_the_query_wherever_the_first_one_stands():
    centre = torch.tensor([[0.0, 1.6], [2.0, 2.0]])
    expected = WindowScope(centre, 1).allowed(2, 1, 2, 4, 0, torch.device("cpu"))
    for first in (5, torch.tensor([1, 7])):
        assert torch.equal(WindowScope(centre, 1, first).allowed(2, 1, 2, 4, first, torch.device("cpu")), expected)


def test_divided_by_their_sum_shares_add_up_to_one_and_nothing_stays_nothing():
    dimmed = GaussianWindow(Softmax(), torch.tensor([[1.0, 1.0]]), width=2, renormalise=True)
    allowed = torch.tensor([[True] * 4, [False] * 4])[None, None]
    weights = dimmed(torch.randn(1, 1, 2, 4), allowed)
    assert_close(weights.sum(-1).flatten(), torch.tensor([1.0, 0.0]))
    assert dimmed.sums_to_one


def test_shares_stay_in_half_precision():
    dimmed = GaussianWindow(Softmax(), torch.tensor([[300.5]]), width=2)
    weights = dimmed(torch.zeros(1, 1, 1, 302, dtype=torch.bfloat16), None)
    assert weights.dtype == torch.bfloat16
    bell = torch.tensor([math.exp(-0.125), math.exp(-0.125)]) / 302
    assert_close(weights[0, 0, 0, 300:], bell.bfloat16())
