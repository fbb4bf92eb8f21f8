import torch

from regard.decoding.align import align


def test_each_target_position_links_to_what_it_looked_at_most():
    weights = torch.tensor([[[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]], [[0.4, 0.6, 0.0], [0.0, 0.1, 0.9]]])
    # the heads' mean of the second row: 0.4, 0.1, 0.5
    assert align(weights) == [(1, 0), (2, 1)]
    assert align(weights[:1]) == [(1, 0), (0, 1)]


def test_of_equal_weights_the_first_wins():
    assert align(torch.full((1, 1, 4), 0.25)) == [(0, 0)]


def test_what_looked_at_nothing_has_no_link():
    assert align(torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])) == [(1, 1)]


def test_no_keys_and_no_steps_have_no_links():
    assert align(torch.zeros(2, 3, 0)) == []
    assert align(torch.zeros(2, 0, 3)) == []


def test_half_precision_is_no_hindrance():
    assert align(torch.tensor([[[0.2, 0.8]]], dtype=torch.float16)) == [(1, 0)]
