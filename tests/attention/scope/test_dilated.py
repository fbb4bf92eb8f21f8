import pytest

from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated


def test_a_query_sees_every_other_key(draw):
    assert draw(Dilated(2)) == ["1010", "0101", "1010", "0101"]


def test_a_query_sees_every_third_key_on_both_sides(draw):
    assert draw(Dilated(3), 2, 7, offset=3) == ["1001001", "0100100"]


def test_with_causal_it_is_the_strided_head_of_the_paper(draw):
    assert draw(Causal() & Dilated(2)) == ["1000", "0100", "1010", "0101"]


def test_a_stride_of_one_is_everything(draw):
    assert draw(Dilated(1), 2, 2) == ["11", "11"]


def test_a_stride_of_zero_is_refused():
    with pytest.raises(ValueError, match="Dilated needs a stride of 1 or more, got 0"):
        Dilated(0)
