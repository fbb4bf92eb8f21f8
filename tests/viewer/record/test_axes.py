import torch
from torch import nn

import regard
from regard.attention import Attention, MultiHead
from regard.viewer.io.check import check
from regard.viewer.record.assemble import half


class Blocks(nn.Module):
    """Not one of ours, but for its attentions: self-attention of two lengths, and a look at something else."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(MultiHead(8, heads=2) for _ in range(2))
        self.read = Attention(8)

    def forward(self, data, other):
        data = data + self.blocks[0](data, self.blocks[0].remember(data)).context
        data = data[:, ::2].contiguous()
        data = data + self.blocks[1](data, self.blocks[1].remember(data)).context
        return self.read(data, self.read.remember(other)).context


def test_any_module_with_our_attentions_is_recorded_and_its_axes_are_named_after_its_parts():
    model = Blocks()
    with regard.record(model) as rec:
        model(torch.randn(1, 6, 8), torch.randn(1, 5, 8))
    trace = rec.trace()
    check(trace)
    assert [
        (attention_map.name, attention_map.query, attention_map.key, attention_map.layer)
        for attention_map in trace.example().attentions
    ] == [
        ("blocks.0", "blocks", "blocks", 0),
        ("blocks.1", "blocks (3)", "blocks (3)", 0),
        ("read", "read queries", "read keys", 0),
    ]


class Pair(nn.Module):
    """Two halves."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(1, 1), nn.Linear(1, 1)


def test_a_half_is_found_also_where_a_model_holds_several_pairs():
    model = nn.ModuleDict({"0": Pair(), "1": Pair(), "decoder": nn.Identity()})
    assert half(Pair(), "encoder.0.self") == "encoder"
    assert half(model, "1.decoder.0.cross") == "decoder"
    assert half(model, "decoder.cross") is None
    assert half(model, "1.other") is None
