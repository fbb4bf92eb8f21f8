import math

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton.arguments import Dropped, Scoped, Sides, Tiles, reach


def test_reach_is_the_largest_number_whatever_its_sign():
    data = torch.tensor([[[[1.0, -3.0], [math.nan, 2.0], [-math.inf, 0.0]]]])
    assert reach(data).flatten().tolist() == [3.0, 0.0, math.inf]


def test_a_mask_is_read_where_it_lies():
    told = Scoped(mask=torch.ones(2, 1, 4, 5, dtype=torch.bool).mT).arguments()
    assert [told[name] for name in ("mask_b", "mask_h", "mask_t", "mask_s")] == [20, 0, 1, 5]
    assert (told["MASK"], told["KEEP"], told["OFFSETS"]) == (True, False, False)


def test_what_dropout_leaves_grows():
    assert Dropped(0.75).arguments()["scale"] == 4
    assert Dropped(1.0).arguments()["scale"] == 0
    assert not Dropped().arguments()["DROPOUT"]


def test_kernels_read_both_sides_unit_by_unit():
    query, key = torch.randn(1, 2, 3, 8), torch.randn(1, 1, 5, 8)
    told = Sides.of(query, key, torch.ones(1, 8)).arguments(Tiles(pairs=4))
    assert (told["query"].shape, told["key"].shape, told["EVEN"]) == ((1, 2, 8, 3), (1, 1, 8, 5), True)
    assert (told["heads"], told["key_heads"], told["v_heads"]) == (2, 1, 1)
