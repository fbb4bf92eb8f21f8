import math

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton.powers import by_row, by_unit


def data():
    made = torch.randn(2, 1, 5, 6)
    made[1, 0, 3, 2], made[1, 0, 4, 5] = math.nan, -60.0
    return made


def test_unit_follows_unit_in_panels_of_rows():
    given = data()
    found = by_unit(given, range(1, 2), range(1, 5), tall=8, high=8, panel=4)
    assert found.data.shape == (1, 2, 8, 4)
    rows = found.data.transpose(2, 3).reshape(8, 8)
    assert rows[2, 2].isnan()
    inside = given[1, 0, 1:3].mul(2).exp()
    torch.testing.assert_close(rows[:2, :6], inside)
    assert rows[4:].eq(1).all()
    assert rows[:, 6:].eq(1).all()


def test_row_follows_row_in_panels_of_units_where_what_is_no_number_is_zero():
    given = data()
    found = by_row(given, range(2), range(5), tall=8, high=8, panel=4)
    assert found.data.shape == (2, 2, 8, 4)
    rows = found.data.transpose(1, 2).reshape(2, 8, 8)
    torch.testing.assert_close(rows[0, :5, :6], given[0, 0].mul(2).exp())
    assert rows[1, 3, 2] == 1
    assert rows[:, 5:].eq(1).all()


def test_the_reach_of_a_row_is_its_largest_number_whatever_its_sign():
    given = data()
    reach = by_row(given, range(1, 2), range(5), tall=8, high=8, panel=4).reach
    assert reach.shape == (1, 8)
    torch.testing.assert_close(reach[0, :4], given[1, 0, :4].abs().nan_to_num(0.0).amax(-1))
    assert reach[0, 4:].tolist() == [60.0, 0.0, 0.0, 0.0]
