import pytest

from regard.attention.scope.blocks import Blocks


def test_a_query_sees_its_own_block(draw):
    assert draw(Blocks(2), 5, 5) == ["11000", "11000", "00110", "00110", "00001"]


def test_its_block_follows_the_offset(draw):
    assert draw(Blocks(3), 2, 6, offset=2) == ["111000", "000111"]


def test_a_block_of_no_positions_is_refused():
    with pytest.raises(ValueError, match="Blocks needs blocks of 1 or more positions, got 0"):
        Blocks(0)
