import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import retrace


def test_a_chunk_is_as_many_heads_or_queries_as_there_is_room_for():
    assert retrace.chunks(8, 10, 10, 350) == (3, 10)
    assert retrace.chunks(2, 10, 10, 350) == (2, 10)
    assert retrace.chunks(8, 10, 10, 99) == (1, 9)
    assert retrace.chunks(8, 10, 10, 5) == (1, 1)


def test_half_precision_is_multiplied_in_single():
    left, right = torch.full((1, 1, 300), 1.0078125, dtype=torch.bfloat16), torch.ones(1, 300, 1, dtype=torch.bfloat16)
    assert retrace.product(left, right).item() == 300 * 1.0078125
