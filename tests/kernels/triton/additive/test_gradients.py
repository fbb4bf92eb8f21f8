import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import gradients
from regard.kernels.triton.additive.arguments import ScoreInputs


def test_what_is_cut_is_written_where_it_lies():
    data = torch.zeros(2, 2, 3, 1)
    gradients.slice_chunk(data, range(1, 3), range(1, 3)).fill_(1)
    assert data.flatten().tolist() == [0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0]
    gradients.slice_chunk(data, range(4), range(3)).fill_(2)
    assert (data == 2).all()
    gradients.slice_chunk(data, range(4), range(2)).fill_(3)
    assert data.flatten().tolist() == [3, 3, 2] * 4


def test_heads_that_share_a_key_or_a_vector_add_up():
    query, key = torch.zeros(1, 2, 1, 3), torch.zeros(1, 1, 1, 3)
    each = gradients.GradientSums(
        query, torch.tensor([[[[1.0, 2.0, 3.0]], [[10.0, 20.0, 30.0]]]]), torch.tensor([[1.0] * 3, [2.0] * 3]), 0
    )
    one = each.gradients(ScoreInputs.of(query, key, torch.ones(1, 3)), None)
    assert one.key.flatten().tolist() == [11.0, 22.0, 33.0]
    assert one.v.tolist() == [[3.0, 3.0, 3.0]]
    apart = each.gradients(ScoreInputs.of(query, key.expand(1, 2, 1, 3), torch.ones(2, 3)), None)
    assert apart.key.shape == (1, 2, 1, 3)
    assert apart.v.tolist() == [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    query, v = torch.zeros(2, 4, 1, 1), torch.arange(8.0)[:, None]  # two heads of four for each vector
    both = gradients.GradientSums(query, query, v, 0).gradients(ScoreInputs.of(query, query, torch.ones(2, 1)), None)
    assert both.v.flatten().tolist() == [0 + 1 + 4 + 5, 2 + 3 + 6 + 7]
