"""The contracts of decoders bite."""

import pytest

from regard.attention import Attention
from regard.attention.score.scaled_dot import ScaledDot
from regard.testing import decoders as contracts

pytestmark = pytest.mark.unhooked


class Counting(Attention):
    """Another context at each call."""

    calls = 0

    def project_output(self, attended, state=()):
        Counting.calls += 1
        attended = super().project_output(attended, state)
        return attended._replace(context=attended.context * Counting.calls)


@pytest.mark.parametrize("check", [contracts.check_decoder, contracts.check_positional_decoder])
def test_an_attention_that_is_another_each_time_is_caught_in_a_decoder(check):
    check(contracts.make_attention(size=4), "luong")
    with pytest.raises(AssertionError):
        check(lambda query, key: Counting(query, key, size=4), "luong")


def test_a_score_that_sees_no_positions_is_caught():
    contracts.check_position("rotary")
    with pytest.raises(AssertionError):
        contracts.check_position(ScaledDot())


def test_attentions_are_made_of_stages():
    assert isinstance(contracts.make_attention(score="additive")(4, 3), Attention)
