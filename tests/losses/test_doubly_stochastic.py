import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Attended
from regard.losses.doubly_stochastic import doubly_stochastic_loss

CONTEXT = torch.zeros(1)
LOOKS = torch.tensor([[[[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]]])  # one head, three tokens, three places
KEEP = torch.tensor([[True, True, False]])


def seen(weights, name="decoder.cross"):
    return {name: Attended(CONTEXT, weights)}


def test_a_plain_case_can_be_worked_by_hand():
    # two tokens count: the places get 0.75, 1.25 and 0, so they are 0.25, 0.25 and 1 away from one
    assert_close(doubly_stochastic_loss(seen(LOOKS), KEEP), torch.tensor(0.0625 + 0.0625 + 1.0))
    assert_close(doubly_stochastic_loss(seen(LOOKS), torch.ones_like(KEEP)), torch.tensor(0.0625 + 0.0625))


def test_padding_of_the_source_costs_nothing():
    places = torch.tensor([[True, True, False]])
    assert_close(doubly_stochastic_loss(seen(LOOKS), KEEP, places), torch.tensor(0.125))


def test_it_is_a_sum_over_targets_and_a_mean_over_all_heads():
    even = torch.eye(3)[None, None]
    both = torch.cat((LOOKS, even), dim=1)  # the second head leaves the third place out
    assert_close(doubly_stochastic_loss(seen(both), KEEP), torch.tensor((1.125 + 1.0) / 2))
    apart = seen(LOOKS, "decoder.0.cross") | seen(even, "decoder.1.cross")
    assert_close(doubly_stochastic_loss(apart, KEEP), doubly_stochastic_loss(seen(both), KEEP))
    rows = torch.cat((LOOKS, LOOKS))
    assert_close(doubly_stochastic_loss(seen(rows), KEEP.expand(2, -1)), 2 * doubly_stochastic_loss(seen(LOOKS), KEEP))


def test_its_gradient_asks_for_what_was_left_out():
    weights = LOOKS.clone().requires_grad_()
    doubly_stochastic_loss(seen(weights), KEEP).backward()
    assert_close(weights.grad[0, 0, 0], torch.tensor([-0.5, 0.5, -2.0]))
    assert not weights.grad[0, 0, 2].any()


def test_half_precision_is_added_up_in_single():
    assert doubly_stochastic_loss(seen(LOOKS.bfloat16()), KEEP).dtype == torch.float32


@pytest.mark.parametrize("attended", [{}, seen(LOOKS, "decoder.0.self"), seen(None)], ids=["none", "self", "no weights"])
def test_without_weights_over_the_source_it_is_refused(attended):
    with pytest.raises(ValueError, match="needs the weights of an attention over the source, got none; ask for weights"):
        doubly_stochastic_loss(attended, KEEP)
