import torch
from torch import nn

from regard.attention.mechanisms.transformer import Transformer
from regard.attention.scope.causal import Causal


def test_it_equals_the_module_of_pytorch():
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    ours = Transformer(8, heads=2, scope=Causal())
    for part, weight, bias in zip(
        (ours.query, ours.key, ours.value), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        part.weight.data, part.bias.data = weight.data, bias.data
    ours.output.load_state_dict(theirs.out_proj.state_dict())
    data = torch.randn(2, 5, 8)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    context, weights = theirs(data, data, data, attn_mask=later, average_attn_weights=False)
    attended = ours(data, ours.remember(data), weights=True)
    torch.testing.assert_close(attended.context, context)
    torch.testing.assert_close(attended.weights, weights)


def test_it_can_be_taken_from_the_module_of_pytorch():
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    ours = Transformer.from_torch(theirs)
    data = torch.randn(2, 5, 8)
    assert type(ours) is Transformer
    torch.testing.assert_close(ours(data, ours.remember(data)).context, theirs(data, data, data)[0])


def test_it_has_eight_heads_unless_told():
    assert Transformer(16).heads == 8
    assert Transformer(16).head == 2
