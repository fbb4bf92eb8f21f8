import pytest

from regard.attention.scope.causal import Causal
from regard.attention.scope.log_sparse import LogSparse


def test_a_query_sees_itself_and_keys_at_powers_of_two(draw):
    assert draw(LogSparse(), 1, 10, offset=0) == ["1110100010"]
    assert draw(LogSparse(), 1, 9, offset=4) == ["101111101"]


def test_with_causal_it_is_the_scope_of_the_paper(draw):
    assert draw(Causal() & LogSparse(), 1, 9, offset=8) == ["100010111"]


def test_local_keys_are_seen_as_well(draw):
    assert draw(Causal() & LogSparse(3), 1, 9, offset=8) == ["100011111"]
    assert draw(LogSparse(0), 1, 4, offset=3) == ["0111"]


def test_negative_local_keys_are_refused():
    with pytest.raises(ValueError, match="LogSparse needs local keys of 0 or more, got -1"):
        LogSparse(-1)
