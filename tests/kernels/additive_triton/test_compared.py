import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import operator
from regard.kernels.additive_triton.arguments import Scoped, Sides, Tiles
from regard.kernels.additive_triton.chunks import Chunk
from regard.kernels.additive_triton.compared import compare, share


def test_the_scores_of_a_chunk_add_up_from_parts_of_the_hidden_units():
    query, key, v = torch.randn(1, 3, 5, 11), torch.randn(1, 3, 7, 11), torch.randn(1, 11)
    found = compare(Sides.of(query, key, v), Chunk(range(1, 3), range(2, 5)), Scoped().arguments(), operator.TILES)
    assert found.scores.shape == (3, 2, 16, 16)  # two processors, eight programs: 4 units, 4 and 3
    expected = (torch.tanh(query[:, 1:, 2:, None] + key[:, 1:, None]) @ v[0] - v.sum())[0]
    torch.testing.assert_close(found.scores.sum(0)[:, :3, :7], expected)


def test_hidden_units_are_split_where_there_are_few_tiles():
    device, tiles = torch.device("cpu"), Tiles(pairs=4)
    assert share(512, 8, tiles, device) == 512
    assert share(512, 3, tiles, device) == 256
    assert share(512, 1, tiles, device) == 64
    assert share(20, 1, tiles, device) == 8
