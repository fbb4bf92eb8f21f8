import re

import pytest
import torch

from regard.attention import Attention
from regard.attention.positions.learned import Learned
from regard.attention.positions.sinusoidal import Sinusoidal

BOTH = pytest.mark.parametrize("kind", [Sinusoidal, Learned])


@BOTH
def test_positions_are_added_to_the_input(kind):
    positions, data = kind(4), torch.randn(2, 3, 4)
    torch.testing.assert_close(positions(data), data + positions.at(torch.arange(3)))


@BOTH
def test_positions_may_stand_beside_the_input(kind):
    positions, data = kind(4, join="concat"), torch.randn(2, 3, 5)
    joined = positions(data)
    assert torch.equal(joined[..., :5], data)
    torch.testing.assert_close(joined[..., 5:], positions.at(torch.arange(3)).expand(2, 3, 4))


@BOTH
def test_the_width_is_known_beforehand(kind):
    assert kind(4).width(4) == 4
    assert kind(4, join="concat").width(5) == 9


@BOTH
@pytest.mark.parametrize("join", ["add", "concat"])
def test_an_offset_is_the_same_as_a_slice(kind, join):
    positions, data = kind(4, join=join), torch.randn(2, 6, 4)
    torch.testing.assert_close(positions(data[:, 2:], offset=2), positions(data)[:, 2:])


@BOTH
@pytest.mark.parametrize("join", ["add", "concat"])
def test_each_row_may_have_an_offset_of_its_own(kind, join):
    positions, data = kind(4, join=join), torch.randn(2, 6, 4)
    part = torch.stack((data[0, 1:4], data[1, 3:6]))
    whole = positions(data)
    expected = torch.stack((whole[0, 1:4], whole[1, 3:6]))
    torch.testing.assert_close(positions(part, offset=torch.tensor([1, 3])), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_input_keeps_its_precision(dtype):
    assert Sinusoidal(4)(torch.zeros(1, 3, 4, dtype=dtype)).dtype == dtype


def shuffled_before_and_after(positions: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """Self-attention over data in another order, and over the data in that order."""
    attention = Attention(query=6, size=6)
    data, order = torch.randn(1, 5, 6), torch.tensor([3, 0, 4, 1, 2])

    def attended(data: torch.Tensor) -> torch.Tensor:
        placed = positions(data)
        return attention(placed, attention.remember(placed)).context

    return attended(data[:, order]), attended(data)[:, order]


def test_without_positions_self_attention_is_blind_to_order():
    shuffled, expected = shuffled_before_and_after(torch.nn.Identity())
    torch.testing.assert_close(shuffled, expected)


@BOTH
def test_with_positions_self_attention_sees_order(kind):
    shuffled, expected = shuffled_before_and_after(kind(6))
    assert (shuffled - expected).abs().max() > 0.01


@BOTH
def test_a_size_below_one_is_refused(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} needs a size of 1 or more, got 0"):
        kind(0)


@BOTH
def test_adding_to_an_input_of_another_size_is_refused(kind):
    text = f"{kind.__name__} of size 4 cannot be added to an input of size 6; build it with size 6, or with join='concat'"
    with pytest.raises(ValueError, match=re.escape(text)):
        kind(4)(torch.zeros(1, 2, 6))


@pytest.mark.unhooked
@BOTH
def test_an_unknown_way_to_join_is_refused(kind):
    with pytest.raises(ValueError, match="join needs to be 'add' or 'concat', got 'multiply'"):
        kind(4, join="multiply")
