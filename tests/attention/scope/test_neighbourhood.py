import pytest
import torch

from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.neighbourhood import Neighbourhood


def test_a_query_sees_what_is_around_it_in_the_grid(draw):
    # a grid of three columns and three rows: the corner, the middle of an edge, the middle
    seen = draw(Neighbourhood(width=3), 9, 9)
    assert seen[0] == "110" + "110" + "000"
    assert seen[1] == "111" + "111" + "000"
    assert seen[4] == "111" + "111" + "111"
    assert seen[8] == "000" + "011" + "011"


def test_the_end_of_one_row_is_no_neighbour_of_the_beginning_of_the_next(draw):
    assert draw(Neighbourhood(width=4), 1, 8, offset=3) == ["0011" + "0011"]


def test_windows_reach_as_far_in_rows_as_in_columns():
    allowed = Neighbourhood(width=20, window=3).allowed(1, 1, 400, 400, 0, torch.device("cpu"))[0, 0]
    grid = allowed[10 * 20 + 7].view(20, 20).nonzero()
    assert (grid.amin(0).tolist(), grid.amax(0).tolist()) == ([7, 4], [13, 10])
    assert len(grid) == 7 * 7


def test_a_grid_of_one_column_is_a_window_and_a_wide_window_is_everything(draw):
    assert draw(Neighbourhood(width=1, window=1), 5, 5) == draw(Local(1), 5, 5)
    assert draw(Neighbourhood(width=2, window=9) & Everywhere()) == ["1111"] * 4
    assert draw(Neighbourhood(width=2, window=0), 3, 3) == ["100", "010", "001"]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="Neighbourhood needs a grid of 1 or more columns, got 0"):
        Neighbourhood(width=0)
    with pytest.raises(
        ValueError, match="Neighbourhood needs a window of 0 or more rows and columns on either side, got -1"
    ):
        Neighbourhood(window=-1)
