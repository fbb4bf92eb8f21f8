import pytest
import torch

from regard.decoding.engines.cpp.transformer import Engine, covers

from ..eager.test_transformer import built
from ..eager.walked import near, walked

OPTIONS = {
    "pre": {},
    "post": {"norm": "post"},
    "untied": {"tie_embeddings": False},
    "wider heads, no biases": {"self_attention_size": 12, "bias": False},
    "learned": {"positions": "learned"},
    "no positions": {"positions": "none"},
    "lanes and more": {"hidden_size": 40, "heads": 2},
}


@pytest.mark.parametrize(
    ("kind", "attention"), [*((kind, "transformer") for kind in OPTIONS), ("pre", "additive"), ("post", "dot")]
)
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    walked(Engine, built(attention, **OPTIONS[kind]))


def test_int8_is_near():
    near(Engine, built(hidden_size=64))


def test_an_attention_with_two_projections_behind_it_is_not_covered():
    decoder = built().decoder
    decoder.layers[1].fit = torch.nn.Linear(8, 8)
    assert covers(decoder) == "needs attentions to the source with one projection of what they find"


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("bilinear", {"decoder": "recurrent"}, "needs the Transformer decoder, got Recurrent"),
        ("transformer", {"activation": "gelu"}, "needs relu, got GELU"),
        ("transformer", {"norm": "rms"}, "needs layer norms"),
        ("transformer", {"embedding_norm": True}, "needs an embedding without a norm"),
        ("transformer", {"embedding_size": 6}, "needs an embedding as wide as its layers"),
        ("additive+sparsemax", {}, "needs Softmax and Everywhere, got Sparsemax"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
