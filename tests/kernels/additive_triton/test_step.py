import math

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import operator
from regard.kernels.additive_triton.arguments import Scoped


def test_one_query_can_be_worked_by_hand():
    query, key = torch.tensor([[[[1.0]]]]), torch.tensor([[[[0.0], [-1.0]]]])
    value, v = torch.tensor([[[[1.0], [3.0]]]]), torch.tensor([[2.0]])
    context, weights = operator.attention(query, key, value, v, weights=torch.float32)
    share = 1 / (1 + math.exp(-2 * math.tanh(1)))
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor([share, 1 - share]))
    torch.testing.assert_close(context[0, 0, 0], torch.tensor([3 - 2 * share]))


@pytest.mark.parametrize("ahead", [0, 60])
def test_one_query_reads_what_it_reads_among_others(ahead):
    query, key, value, v = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 50, 3), torch.randn(1, 1, 50, 5), torch.randn(1, 3)
    both = operator.attention(query, key, value, v, Scoped(offset=20, ahead=ahead), weights=torch.float32)
    alone = operator.attention(query[:, :, 1:], key, value, v, Scoped(offset=21, ahead=ahead), weights=torch.float32)
    for found, expected in zip(alone, both, strict=True):
        torch.testing.assert_close(found, expected[:, :, 1:])
