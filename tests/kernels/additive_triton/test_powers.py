import math

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton.powers import Some, by_row, by_unit


def data():
    made = torch.randn(2, 1, 5, 6)
    made[1, 0, 3, 2], made[1, 0, 4, 5] = math.nan, -60.0
    return made


def test_unit_follows_unit_in_panels_of_rows():
    given = data()
    found, other = by_unit(Some(given, range(1, 2), range(1, 5), 8), Some(given, range(1), range(5), 6), 8, 4, 2)
    assert other.data.shape == (1, 3, 8, 2)
    torch.testing.assert_close(other.data.transpose(2, 3).reshape(6, 8)[:5, :6], given[0, 0].mul(2).exp())
    assert found.data.shape == (1, 2, 8, 4)
    rows = found.data.transpose(2, 3).reshape(8, 8)
    assert rows[2, 2].isnan()
    inside = given[1, 0, 1:3].mul(2).exp()
    torch.testing.assert_close(rows[:2, :6], inside)
    assert rows[4:].eq(1).all()
    assert rows[:, 6:].eq(1).all()


def test_row_follows_row_in_panels_of_units_where_what_is_no_number_is_zero():
    given = data()
    found, other = (
        by_row(each, 8, 4) for each in (Some(given, range(2), range(5), 8), Some(given, range(1), range(2, 4), 2))
    )
    torch.testing.assert_close(other.data.transpose(1, 2).reshape(2, 8)[:, :6], given[0, 0, 2:4].mul(2).exp())
    assert found.data.shape == (2, 2, 8, 4)
    rows = found.data.transpose(1, 2).reshape(2, 8, 8)
    torch.testing.assert_close(rows[0, :5, :6], given[0, 0].mul(2).exp())
    assert rows[1, 3, 2] == 1
    assert rows[:, 5:].eq(1).all()


def test_the_reach_of_a_block_is_its_largest_number_whatever_its_sign():
    given = torch.randn(2, 1, 70, 6)
    given[1, 0, 33, 2], given[1, 0, 69, 5] = math.nan, -60.0
    few, many = Some(given, range(1), range(3), 8), Some(given, range(1, 2), range(70), 80)
    one, reach = (by_row(each, 8, 4).reach for each in (few, many))
    assert one.tolist() == [[given[0, 0, :3].abs().max().item()]]
    size = given[1, 0].abs().nan_to_num(0.0)
    assert reach.tolist() == [[size[:32].max().item(), size[32:64].max().item(), 60.0]]


def test_rows_may_be_raised_in_half_precision():
    data = torch.tensor([[[[0.0, 0.25]]]])
    found = by_row(Some(data, range(1), range(1), 32), 64, 64, torch.bfloat16)
    assert (found.data.dtype, found.reach.dtype) == (torch.bfloat16, torch.float32)
    assert found.data[0, 0, 0, :3].tolist() == pytest.approx([1, math.exp(0.5), 1], rel=2**-7)
