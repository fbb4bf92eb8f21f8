import re

import pytest
import torch

from regard.attention.scope.landmarks import Landmarks
from regard.attention.scope.local import Local


def test_the_first_are_seen_by_all_and_see_all(draw):
    assert draw(Landmarks(1)) == ["1111", "1000", "1000", "1000"]
    assert draw(Landmarks(2)) == ["1111", "1111", "1100", "1100"]


def test_every_nth_may_be_one(draw):
    assert draw(Landmarks(first=0, every=3), 5, 5) == ["11111", "10010", "10010", "11111", "10010"]
    assert draw(Landmarks(first=2, every=3), 4, 4) == ["1111", "1111", "1101", "1111"]


def test_each_row_may_have_a_number_of_its_own(draw):
    scope = Landmarks(torch.tensor([0, 1]))
    assert draw(scope, 2, 3, row=0, batch=2) == ["000", "000"]
    assert draw(scope, 2, 3, row=1, batch=2) == ["111", "100"]


def test_with_a_window_it_is_longformers(draw):
    assert draw(Local(1) | Landmarks(1), 5, 5) == ["11111", "11100", "11110", "10111", "10011"]


def test_queries_count_from_their_offset(draw):
    assert draw(Landmarks(1), queries=2, offset=2) == ["1000", "1000"]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="Landmarks needs 0 or more first positions, got -1"):
        Landmarks(-1)
    with pytest.raises(ValueError, match="Landmarks needs every to be 1 or more, or 0 for none, got -2"):
        Landmarks(every=-2)
    text = "Landmarks needs one number of first positions for each of 3 rows, got (2,)"
    with pytest.raises(ValueError, match=re.escape(text)):
        Landmarks(torch.tensor([1, 2])).allowed(3, 1, 1, 4, 0, torch.device("cpu"))
