"""Cases of mechanisms: built afresh, away from where they began, with a source that has padding."""

import torch

from regard.attention import Attention
from regard.testing.mechanism_cases import (
    KEEP,
    MechanismCase,
    amplify,
    largest,
    make_query,
    make_source,
    read_values,
    require_values,
    spoil_padding,
)


def test_two_builds_are_equal_and_in_double_precision():
    case = MechanismCase("projected", lambda query, key: Attention(query, key, size=4))
    first, second = case.build().state_dict(), case.build().state_dict()
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert all(value.dtype == torch.float64 for value in first.values())


def test_spoiled_padding_is_not_a_number_and_the_rest_is_as_it_was():
    source = make_source()
    spoiled = spoil_padding(source)
    assert spoiled.data[~KEEP].isnan().all()
    assert require_values(spoiled)[~KEEP].isnan().all()
    assert torch.equal(spoiled.data[KEEP], source.data[KEEP])


def test_values_are_read_by_their_weights():
    module = Attention(4, 3, size=4).double()
    memory = module.remember(make_source())
    attended = module(make_query(), memory, weights=True)
    torch.testing.assert_close(read_values(module, attended.weights, memory), attended.context)


def test_scores_are_amplified_to_ten_thousand():
    case = MechanismCase("projected", lambda query, key: Attention(query, key, size=4))
    assert 0.6e4 <= largest(*amplify(case)) <= 1.5e4
