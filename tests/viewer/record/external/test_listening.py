"""Recording of PyTorch's own attention: `nn.MultiheadAttention` and plain calls of `F.scaled_dot_product_attention`."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import regard
from regard.viewer.record.external.listeners import LISTENERS, find_listener
from regard.viewer.record.external.listening import hide_keys
from regard.viewer.record.external.product import Product


class Plain(nn.Module):
    """Self-attention by a plain call of PyTorch's function."""

    def __init__(self, causal=True):
        super().__init__()
        self.project, self.causal = nn.Linear(8, 24), causal

    def forward(self, data):
        query, key, value = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.project(data).chunk(3, -1))
        context = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return context.transpose(1, 2).flatten(2)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Plain(), Plain(causal=False)

    def forward(self, data):
        return self.second(self.first(data))


def test_plain_calls_are_recorded_under_the_module_that_makes_them():
    network, data = Network(), torch.randn(2, 5, 8)
    expected = network(data)
    with regard.record(network) as rec:
        assert torch.equal(network(data), expected)
    trace = rec.trace()
    assert [attention.name for attention in trace.examples[0].attentions] == ["first", "second"]
    assert len(trace.examples) == 2
    first, second = trace.examples[1].attentions
    assert not np.triu(first.weights, 1).any()
    assert first.allowed.tolist() == np.tri(5, dtype=bool).tolist()
    assert second.allowed is None
    query, key, _ = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in network.first.project(data).chunk(3, -1))
    scores = (query @ key.mT / 2).masked_fill(~torch.ones(5, 5).tril().bool(), -torch.inf)
    np.testing.assert_allclose(first.weights, scores.softmax(-1)[1].detach().numpy(), atol=1e-3)
    assert LISTENERS == []
    assert find_listener(network) is None


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("other", [False, True])
def test_multi_head_attention_has_the_weights_that_it_returns_itself(batch_first, other):
    torch.manual_seed(0)
    size = {"kdim": 6, "vdim": 6} if other else {}
    module = nn.MultiheadAttention(8, 2, batch_first=batch_first, add_zero_attn=other, **size)
    query = torch.randn(2, 5, 8)
    source = torch.randn(2, 4, 6) if other else query
    mask = torch.tensor([[False] * 3 + [True], [False] * 4]) if other else None
    if not batch_first:
        query, source = query.transpose(0, 1), source.transpose(0, 1)
    source = source if other else query
    with regard.record(module) as rec:
        _, weights = module(query, source, source, key_padding_mask=mask, average_attn_weights=False)
    trace = rec.trace()
    for number in range(2):
        np.testing.assert_allclose(trace.attention(None, number).weights, weights[number].detach().numpy(), atol=1e-3)


def test_a_transformer_of_pytorch_is_recorded_layer_by_layer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    network, data = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), torch.randn(1, 5, 8)
    with torch.no_grad():
        expected = network(data)
        with regard.record(network, statistics=True, rows=[-1]) as rec:
            torch.testing.assert_close(network(data), expected)
    trace = rec.trace()
    assert [attention.name for attention in trace.examples[0].attentions] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert trace.attention().rows == (4,)
    kinds = {node.id: node.kind for node in trace.graph.nodes}
    assert kinds["layers.0.self_attn"] == "attention"


def test_rows_statistics_heads_and_layers_are_chosen():
    network, data = Network(), torch.randn(1, 5, 8)
    with regard.record(network, rows=[1, 3], statistics=("argmax", "top_2"), heads=[1], layers=["second"]) as rec:
        network(data)
    with regard.record(network) as whole:
        network(data)
    attention, full = rec.trace().attention(), whole.trace().attention()
    assert [one.name for one in rec.trace().examples[0].attentions] == ["second"]
    assert attention.rows == (1, 3)
    np.testing.assert_allclose(attention.weights, full.weights[1:, [1, 3]], atol=1e-3)
    assert attention.statistics["argmax"].tolist() == full.weights[1:].argmax(-1).tolist()
    assert "Heads 1 were recorded, and no others." in rec.trace().notes
    with regard.record(network, layers=[0]) as rec:
        network(data)
    assert [one.name for one in rec.trace().examples[0].attentions] == ["first"]


def test_gradients_of_weights_are_recorded_where_a_backward_pass_runs():
    network, data = Network(), torch.randn(2, 5, 8)
    with regard.record(network, gradients=True) as rec:
        network(data).square().sum().backward()
    trace = rec.trace()
    assert [one.name for one in trace.examples[0].attentions] == ["first", "first × gradient", "second", "second × gradient"]
    product = trace.attention("first × gradient", 1)
    assert not product.sums_to_one
    assert np.abs(product.weights).max() > 0
    assert not np.triu(product.weights, 1).any()
    with (
        torch.no_grad(),
        regard.record(network, gradients=True),
        pytest.raises(ValueError, match="first ran without; leave"),
    ):
        network(data)
    with regard.record(network, gradients=True) as rec:
        network(data)
    with pytest.raises(ValueError, match="no backward pass ran inside the block: call backward"):
        rec.trace()


def test_what_only_models_of_other_libraries_have_is_refused_elsewhere():
    from regard.attention import MultiHead

    with pytest.raises(ValueError, match="are for models of other libraries; MultiHead has attentions of ours"):
        regard.record(MultiHead(8, heads=2), rows=[-1])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"heads": [1, 0]}, r"heads needs the numbers of heads, each once and in order, from 0 on, got \(1, 0\)"),
        ({"layers": "second"}, "layers needs numbers of attentions or parts of their names, got 'second'"),
        ({"gradients": True, "statistics": True}, "gradients are those of all weights; leave statistics and rows out"),
        ({"statistics": ("sharpness",)}, "there is no statistic 'sharpness'"),
    ],
)
def test_a_selection_that_names_nothing_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        regard.record(Network(), **options)


def test_a_head_that_is_not_there_is_refused():
    with regard.record(Network(), heads=[2]) as rec, pytest.raises(ValueError, match="heads needs numbers below 2"):
        rec.model(torch.randn(1, 5, 8))


def test_hidden_keys_are_seen_by_nobody_who_sees_another():
    query = torch.randn(1, 2, 4, 4)
    product, hidden = Product(query, query, query, 1.0, causal=True), torch.tensor([[True, False, False, True]])
    weights = hide_keys(product, hidden).all_weights()
    assert (weights[:, :, 1:, 0] == 0).all()
    assert (weights[:, :, 3, 3] == 0).all()
    assert (weights[:, :, 0, 0] == 1).all()  # it sees nothing else
    added = Product(query, query, query, 1.0, torch.randn(1, 1, 4, 4))
    assert (hide_keys(added, hidden).all_weights()[..., [0, 3]] == 0).all()
    assert hide_keys(product, torch.ones(1, 3, dtype=torch.bool)) is product


def test_a_model_that_calls_itself_nowhere_says_what_to_do():
    with regard.record(nn.Linear(2, 2)) as rec:
        rec.model(torch.zeros(1, 2))
    with pytest.raises(ValueError, match="no attention of Linear was heard"):
        rec.trace()
