import math
from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.arguments import ReadTile


def test_one_hidden_unit_can_be_worked_by_hand():
    query, key = torch.tensor([[[[0.0], [1.0]]]]), torch.tensor([[[[0.0], [1.0]]]])
    value, v = torch.tensor([[[[1.0], [3.0]]]]), torch.tensor([[2.0]])
    context, weights = operator.attention(query, key, value, v, weights=torch.float32)
    share = 1 / (1 + math.exp(2 * math.tanh(1)))
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor([share, 1 - share]))
    torch.testing.assert_close(context[0, 0, 0], torch.tensor([3 - 2 * share]))
    expected = [[0.0, 2 * math.tanh(1)], [2 * math.tanh(1), 2 * math.tanh(2)]]
    torch.testing.assert_close(operator.scores(query, key, v)[0, 0], torch.tensor(expected))


def test_values_wider_than_a_tile_are_read_in_parts(monkeypatch):
    query, key, value = torch.randn(1, 1, 3, 2), torch.randn(1, 1, 5, 2), torch.randn(1, 1, 5, 37)
    expected = operator.attention(query, key, value, torch.ones(1, 2))[0]
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, read_single=ReadTile(16, 16, 16, 4)))
    torch.testing.assert_close(operator.attention(query, key, value, torch.ones(1, 2))[0], expected)
