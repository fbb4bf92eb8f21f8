import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import retrace
from regard.kernels.additive_triton.arguments import Tiles


def test_the_columns_of_a_tile_are_split_where_there_are_few_programs():
    device, tiles = torch.device("cpu"), Tiles(gather_columns=32)  # two processors, eight programs
    assert retrace.shared(8, 1024, tiles, device) == (1, 1024)
    assert retrace.shared(2, 1024, tiles, device) == (4, 256)
    assert retrace.shared(1, 96, tiles, device) == (3, 32)


def test_what_chunks_of_queries_find_adds_up():
    place = torch.ones(2)
    retrace.put(place, torch.full((2,), 3.0), several=True)
    assert place.tolist() == [4, 4]
    retrace.put(place, torch.full((2,), 3.0), several=False)
    assert place.tolist() == [3, 3]


def test_half_precision_is_multiplied_in_single():
    left, right = torch.full((1, 1, 300), 1.0078125, dtype=torch.bfloat16), torch.ones(1, 300, 1, dtype=torch.bfloat16)
    assert retrace.product(left, right).item() == 300 * 1.0078125
