"""Small models of every kind, and a batch for them."""

from itertools import product

import torch

from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import pad
from regard.models.seq2seq import build

ATTENTIONS = (
    "none",
    "additive",
    "bilinear",
    "dot",
    "scaled_dot",
    "concat",
    "location",
    "transformer",
    "additive+sparsemax",
)
ORDERS = {
    "bahdanau": {"order": "bahdanau"},
    "luong": {"order": "luong"},
    "luong without feeding": {"order": "luong", "input_feeding": False},
}
KINDS = {
    **{
        f"{encoder}, recurrent, {cell}, {order}": {"encoder": encoder, "decoder": "recurrent", "cell": cell} | options
        for encoder, cell, (order, options) in product(("recurrent", "transformer"), ("tanh", "lstm", "gru"), ORDERS.items())
    },
    **{
        f"recurrent, transformer, {cell}": {"encoder": "recurrent", "decoder": "transformer", "cell": cell}
        for cell in ("tanh", "lstm", "gru")
    },
    "convolution, recurrent": {"encoder": "convolution", "decoder": "recurrent", "embedding_size": 6},
    **{
        f"{encoder}, convolution": {"encoder": encoder, "decoder": "convolution", "layers": 2, "embedding_size": width}
        for encoder, width in (("recurrent", 6), ("convolution", 8), ("transformer", 6))
    },
    "convolution, transformer": {"encoder": "convolution", "decoder": "transformer", "kernel_size": 5},
    "transformer, transformer, pre": {"encoder": "transformer", "decoder": "transformer"},
    "transformer, transformer, post": {"encoder": "transformer", "decoder": "transformer", "norm": "post"},
}
NO_DROPOUT = Dropout(embedding=0.0, residual=0.0)


def made(attention="additive", dropout=NO_DROPOUT, source=11, target=13, joint=False, **options):
    """A model of size 8."""
    part = attention if isinstance(attention, AttentionPart) else AttentionPart(name=attention, heads=2)
    config = Model(**{"hidden_size": 8, "heads": 2, "feedforward_size": 12} | options, attention=part)
    return build(config, dropout, source, target, joint)


def batch():
    """Three sources of 4, 2 and 3 tokens, and the input of a decoder."""
    source = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2]])
    return source, torch.tensor([[1, 4, 5], [1, 8, 2], [1, 2, 0]])
