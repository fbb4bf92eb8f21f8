import math

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive.precompute_exp import RowRange, precompute_exponentials


def data():
    made = torch.randn(2, 1, 5, 6)
    made[1, 0, 3, 2], made[1, 0, 4, 5] = math.nan, -60.0
    return made


def test_unit_follows_unit_in_panels_of_rows():
    given = data()
    found, other = precompute_exponentials(
        RowRange(given, range(1, 2), range(1, 5), 8), RowRange(given, range(1), range(5), 6), 8, 4, 2
    )
    assert other.data.shape == (1, 3, 8, 2)
    torch.testing.assert_close(other.data.transpose(2, 3).reshape(6, 8)[:5, :6], given[0, 0].mul(2).exp())
    assert found.data.shape == (1, 2, 8, 4)
    rows = found.data.transpose(2, 3).reshape(8, 8)
    assert rows[2, 2].isnan()
    inside = given[1, 0, 1:3].mul(2).exp()
    torch.testing.assert_close(rows[:2, :6], inside)
    assert rows[4:].eq(1).all()
    assert rows[:, 6:].eq(1).all()


def test_the_reach_of_a_block_is_its_largest_number_whatever_its_sign():
    given = torch.randn(2, 1, 70, 6)
    given[1, 0, 33, 2], given[1, 0, 69, 5] = math.nan, -60.0
    few, many = RowRange(given, range(1), range(3), 8), RowRange(given, range(1, 2), range(70), 80)
    one, reach = (each.reach for each in precompute_exponentials(few, many, 8, 4, 4))
    assert one.tolist() == [[given[0, 0, :3].abs().max().item()]]
    size = given[1, 0].abs().nan_to_num(0.0)
    assert reach.tolist() == [[size[:32].max().item(), size[32:64].max().item(), 60.0]]
