import math

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive.precompute_exp import RowRange
from regard.kernels.triton.additive.precompute_mma import transpose_sides


def words(found, head):
    """The numbers of a head again, (rows, units)."""
    return found.data[head].contiguous().view(torch.bfloat16).unflatten(1, (-1, 4)).transpose(0, 1).flatten(1)


@pytest.mark.parametrize("hidden", [8, 6], ids=["read by words", "read one by one"])
def test_four_units_of_all_rows_lie_beside_each_other(hidden):
    given = torch.randn(2, 1, 5, hidden).bfloat16()
    given[1, 0, 3, 2] = math.nan
    ours, theirs = transpose_sides(RowRange(given, range(1, 2), range(1, 5), 8), RowRange(given, range(2), range(5), 6), 2)
    assert (ours.data.shape, theirs.data.shape) == ((1, 2, 8), (2, 2, 6))
    torch.testing.assert_close(words(ours, 0)[:4, :hidden], given[1, 0, 1:], equal_nan=True)
    assert not words(ours, 0)[4:].any()
    assert not words(ours, 0)[:, hidden:].any()
    for head in (0, 1):
        torch.testing.assert_close(words(theirs, head)[:5, :hidden], given[head, 0], equal_nan=True)


def test_the_reach_of_a_block_is_its_largest_number_whatever_its_sign():
    given = torch.randn(2, 1, 70, 6).bfloat16()
    given[1, 0, 33, 2], given[1, 0, 69, 5] = math.nan, -60.0
    one, many = transpose_sides(RowRange(given, range(1), range(3), 8), RowRange(given, range(1, 2), range(70), 80), 2)
    assert one.reach.tolist() == [[given[0, 0, :3].abs().max().item()]]
    size = given[1, 0].abs().nan_to_num(0.0)
    assert many.reach.tolist() == [[size[:32].max().item(), size[32:64].max().item(), 60.0]]
