import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention.scope.causal import Causal
from regard.models.layers.transformer import Sublayers

DATA = torch.tensor([[[1.0, 3.0]]])


def test_the_feedforward_network_has_one_hidden_layer():
    network = Sublayers(2, inner=5).build_feedforward()
    W1, b1, W2, b2 = network.parameters()
    assert_close(network(DATA), (DATA @ W1.mT + b1).clamp_min(0) @ W2.mT + b2)
    assert W1.shape == (5, 2)
    assert Sublayers(2).build_feedforward()[0].out_features == 8


@pytest.mark.parametrize(("name", "bend"), [("gelu", nn.functional.gelu), ("swish", nn.functional.silu)])
def test_another_activation_bends_its_middle(name, bend):
    network = Sublayers(2, inner=5, activation=name).build_feedforward()
    W1, b1, W2, b2 = network.parameters()
    assert_close(network(DATA), bend(DATA @ W1.mT + b1) @ W2.mT + b2)


def test_a_gated_network_without_bias_is_three_matrices():
    network = Sublayers(2, inner=5, gated=True, bias=False).build_feedforward()
    W, V, W2 = network.parameters()
    assert_close(network(DATA), ((DATA @ W.mT).clamp_min(0) * (DATA @ V.mT)) @ W2.mT)


def test_self_attention_projects_to_a_size_of_its_own_without_bias():
    look = Sublayers(6, heads=2, width=8, bias=False, self_attention="sparsemax", drop_attention=0.25).build_self_attention(
        "causal"
    )
    assert (look.head, look.query.weight.shape, look.output.weight.shape) == (4, (8, 6), (6, 8))
    assert look.query.bias is look.output.bias is None
    assert look.scope == Causal()
    assert look.dropout == 0.25


@pytest.mark.parametrize(("norm", "last"), [("pre", nn.LayerNorm), ("post", nn.Identity), ("rms", nn.RMSNorm)])
def test_one_more_norm_follows_the_last_layer_where_norms_come_first(norm, last):
    made = Sublayers(2, norm=norm, drop_residual=0.5)
    assert type(made.build_final_norm()) is last
    assert made.build_residual().drop.p == 0.5
    assert made.build_residual().first == (norm != "post")
