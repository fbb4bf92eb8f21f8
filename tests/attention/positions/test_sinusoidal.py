import math

import torch

from regard.attention.positions.sinusoidal import Sinusoidal, encode_sinusoidal


def test_position_one_can_be_worked_by_hand():
    found = Sinusoidal(4).at(torch.tensor([0, 1]))
    # base^{2/4} = 100, so the second pair turns a hundred times slower
    expected = [[0.0, 1.0, 0.0, 1.0], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_an_odd_size_leaves_the_last_cosine_out():
    found = Sinusoidal(3).at(torch.tensor([2]))
    slow = 2 / 10_000 ** (2 / 3)
    torch.testing.assert_close(found, torch.tensor([[math.sin(2), math.cos(2), math.sin(slow)]]))
    assert Sinusoidal(1).at(torch.tensor([2])).item() == torch.tensor(2.0).sin().item()


def test_the_base_sets_the_longest_wave():
    found = Sinusoidal(4, base=4.0).at(torch.tensor([1]))
    torch.testing.assert_close(found, torch.tensor([[math.sin(1), math.cos(1), math.sin(0.5), math.cos(0.5)]]))


def test_one_rotation_leads_from_every_position_to_that_k_further():
    positions, k = Sinusoidal(8), 7
    turns = []
    for pair in range(4):
        angle = k / 10_000 ** (2 * pair / 8)
        # sin(a + b) = cos b sin a + sin b cos a and cos(a + b) = -sin b sin a + cos b cos a
        turns.append(torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]))
    rotation = torch.block_diag(*turns)
    here, there = positions.at(torch.arange(100)), positions.at(torch.arange(100) + k)
    torch.testing.assert_close(here @ rotation.mT, there, atol=1e-5, rtol=0)


def test_far_positions_keep_their_precision():
    found = Sinusoidal(2).at(torch.tensor([1_000_003])).flatten()
    torch.testing.assert_close(found, torch.tensor([math.sin(1_000_003), math.cos(1_000_003)]))


def test_it_has_nothing_to_learn():
    assert list(Sinusoidal(4).parameters()) == []


def test_positions_may_have_any_shape():
    assert Sinusoidal(4).at(torch.zeros(2, 3, 5, dtype=torch.long)).shape == (2, 3, 5, 4)


def test_the_vectors_come_in_double_precision_where_that_is_wanted():
    found = encode_sinusoidal(torch.tensor([-3]), 4)
    expected = [[math.sin(-3), math.cos(-3), math.sin(-0.03), math.cos(-0.03)]]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-14, atol=1e-14)
