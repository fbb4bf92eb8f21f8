"""One call of dot-product attention: its weights and statistics, against PyTorch's function and the whole matrix."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention.statistics import measure
from regard.viewer.record.external.product import Product

NAMES = ("entropy", "argmax", "max", "mean_position", "spread", "received", "uniform", "top_2")


def sides(heads=4, groups=2, queries=7, keys=7):
    torch.manual_seed(0)
    return torch.randn(2, heads, queries, 8), torch.randn(2, groups, keys, 8), torch.randn(2, groups, keys, 8)


@pytest.mark.parametrize("kind", ["none", "causal", "boolean", "added"])
def test_weights_times_values_are_the_context_of_pytorch(kind):
    query, key, value = sides()
    mask = {"boolean": torch.rand(2, 1, 7, 7) > 0.4, "added": torch.randn(1, 4, 7, 7)}.get(kind)
    call = Product(query, key, value, 8**-0.5, mask, kind == "causal")
    expected = F.scaled_dot_product_attention(query, key, value, mask, is_causal=kind == "causal", enable_gqa=True)
    seen = torch.ones(2, 1, 7, 1, dtype=torch.bool) if kind != "boolean" else mask.any(-1, keepdim=True)
    torch.testing.assert_close(call.combine(call.all_weights()) * seen, expected.nan_to_num() * seen)


def test_a_query_that_sees_nothing_has_no_weights():
    mask = torch.ones(1, 1, 7, 7, dtype=torch.bool)
    mask[:, :, 3] = False
    weights = Product(*sides(), 1.0, mask).all_weights()
    assert (weights[:, :, 3] == 0).all()
    torch.testing.assert_close(weights.sum(-1)[:, :, :3], torch.ones(2, 4, 3))


def test_soft_cap_and_sinks_by_hand():
    call = Product(torch.tensor([[[[2.0]]]]), torch.tensor([[[[1.0], [3.0]]]]), torch.zeros(1, 1, 2, 1), 1.0, softcap=4.0)
    scores = 4 * torch.tanh(torch.tensor([2.0, 6.0]) / 4)
    torch.testing.assert_close(call.all_weights()[0, 0, 0], scores.softmax(0))
    with_sink = Product(call.query, call.key, call.value, 1.0, sinks=torch.tensor([1.5]))
    torch.testing.assert_close(with_sink.all_weights()[0, 0, 0], torch.tensor([2.0, 6.0, 1.5]).softmax(0)[:2])


@pytest.mark.parametrize("causal", [False, True])
def test_statistics_block_by_block_are_those_of_the_whole_matrix(causal, monkeypatch):
    call = Product(*sides(), 0.3, causal=causal)
    whole = measure(call.all_weights(), call.allowed(0, 7), NAMES)
    monkeypatch.setattr(Product, "blocks", lambda self, most=0: [(0, 3), (3, 6), (6, 7)])
    for name, values in call.statistics(NAMES[:-1]).items():
        torch.testing.assert_close(values, whole[name])


def test_queries_of_padding_give_nothing_to_any_key():
    call, real = Product(*sides(), 0.3), torch.tensor([[True] * 5 + [False] * 2, [True] * 7])
    received = call.statistics(("received", "uniform"), real)
    torch.testing.assert_close(received["received"][0], call.weights(0, 5)[0].sum(-2))
    torch.testing.assert_close(received["uniform"].sum(-1), torch.tensor([[5.0] * 4, [7.0] * 4]))


def test_blocks_hold_a_bounded_number_of_weights():
    call = Product(*sides(queries=50, keys=64), 1.0)
    assert call.blocks(2 * 4 * 64 * 20) == [(0, 20), (20, 40), (40, 50)]
    assert len(call.blocks(1)) == 50
    assert len(call.blocks()) == 1
