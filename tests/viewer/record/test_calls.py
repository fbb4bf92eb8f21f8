import numpy as np
import pytest
import torch

from regard.attention import Attention, MultiHead
from regard.attention.scope.causal import Causal
from regard.models.attention_factory import build_attention
from regard.viewer.record.calls import adds_up, allowance, half, measured


def test_what_may_be_seen_follows_scope_padding_and_place():
    causal = Attention(4, scope=Causal())
    source = torch.randn(1, 3, 4)
    memory = causal.remember(source)
    assert allowance(causal, source, memory, None)[0, 0].tolist() == torch.ones(3, 3).tril().bool().tolist()
    assert allowance(causal, source[:, :1], memory, None).all()  # one query stands at the last key
    assert allowance(causal, source[:, :1], memory, 1)[0, 0].tolist() == [[True, True, False]]
    padded = causal.remember(source)._replace(keep=torch.tensor([[True, False, True]]))
    assert allowance(causal, source[:, :1], padded, 2)[0, 0].tolist() == [[True, False, True]]
    several = MultiHead(4, heads=2)
    assert allowance(several, source, several.remember(source), None) is None


@pytest.mark.parametrize(
    ("name", "expected"), [("additive", True), ("additive+sigmoid", False), ("monotonic", False), ("local_p", False)]
)
def test_whether_weights_add_up_is_known_from_the_attention_and_held_against_them(name, expected):
    cross = build_attention(name, 4, 4)
    assert adds_up(cross, None, None) == expected
    if expected:
        assert adds_up(cross, torch.full((1, 1, 2, 4), 0.25), None)
        assert not adds_up(cross, torch.full((1, 1, 2, 4), 0.5), None)
        assert not adds_up(cross, torch.tensor([[[[2.0, -1.0]]]]), None)
        blind = torch.zeros(1, 1, 1, 4)
        assert adds_up(cross, blind, torch.zeros(1, 1, 1, 4, dtype=torch.bool))  # a query that may see nothing reads nothing


def test_queries_of_padding_give_nothing_to_any_key():
    weights = torch.full((1, 1, 2, 2), 0.5)
    found = measured(weights, None, torch.tensor([[True, False]]))
    assert found["received"].tolist() == [[[0.5, 0.5]]]
    assert found["uniform"].tolist() == [[[0.5, 0.5]]]
    assert measured(weights, None, None)["received"].tolist() == [[[1.0, 1.0]]]


def test_weights_in_bfloat16_add_up_as_far_as_it_can_tell():
    weights = (3 * torch.randn(1, 1, 200, 40, generator=torch.Generator().manual_seed(0))).softmax(-1).bfloat16()
    assert (weights.float().sum(-1) - 1).abs().max() > 1e-3
    assert adds_up(MultiHead(4, heads=1), weights, None)
    assert not adds_up(MultiHead(4, heads=1), weights * 1.01, None)


def test_numbers_beyond_half_precision_are_kept_in_single():
    assert half(torch.tensor([1.0, float("-inf")])).dtype == np.float16
    large = half(torch.tensor([1e5, float("-inf")]))
    assert large.dtype == np.float32
    assert large.tolist() == [1e5, float("-inf")]
