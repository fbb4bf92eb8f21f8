import math

import torch

from regard.attention.normalise.softmax import Softmax


def test_shares_grow_exponentially():
    scores = torch.tensor([[[[0.0, math.log(3)], [1.0, 1.0]]]])
    torch.testing.assert_close(Softmax()(scores)[0, 0], torch.tensor([[0.25, 0.75], [0.5, 0.5]]))


def test_what_is_not_allowed_leaves_its_share_to_the_others():
    scores = torch.tensor([[[[0.0, math.log(3), 9.0]]]])
    allowed = torch.tensor([[[[True, True, False]]]])
    torch.testing.assert_close(Softmax()(scores, allowed).flatten(), torch.tensor([0.25, 0.75, 0.0]))


def test_a_query_that_sees_nothing_gets_zeros_and_passes_no_gradient():
    scores = torch.tensor([[[[1.0, 2.0]]]], requires_grad=True)
    weights = Softmax()(scores, torch.tensor([[[[False, False]]]]))
    assert weights.flatten().tolist() == [0.0, 0.0]
    weights.sum().backward()
    assert scores.grad.flatten().tolist() == [0.0, 0.0]


def test_large_scores_do_not_overflow():
    scores = torch.tensor([[[[1e4, 1e4, -1e4]]]])
    assert Softmax()(scores).flatten().tolist() == [0.5, 0.5, 0.0]
    assert Softmax()(scores.half()).flatten().tolist() == [0.5, 0.5, 0.0]
