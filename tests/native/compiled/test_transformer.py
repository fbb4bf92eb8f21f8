import pytest
import torch

from regard.models.types import select
from regard.native.compiled.transformer import Engine, covers

from ..test_recurrent import PATH, SOURCE
from ..test_transformer import built

OPTIONS = {
    "pre": {},
    "post": {"norm": "post"},
    "untied": {"tie": False},
    "wider heads, no biases": {"self_size": 12, "bias": False},
    "learned": {"positions": "learned"},
    "no positions": {"positions": "none"},
    "lanes and more": {"size": 40, "heads": 2},
}


@pytest.mark.parametrize(
    ("kind", "attention"), [*((kind, "transformer") for kind in OPTIONS), ("pre", "additive"), ("post", "dot")]
)
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    model = built(attention, **OPTIONS[kind])
    decoder = model.decoder
    with torch.no_grad():
        memory = model.encode(SOURCE)
        steps, state = Engine(decoder).begin(memory), decoder.start(memory)
        for tokens, parents, staying in PATH:
            if staying is not None:
                steps.leave(staying)
                memory = select(memory, staying)
            state = state if parents is None else select(state, parents)
            expected = decoder.step(tokens, memory, state)
            torch.testing.assert_close(steps.step(tokens, parents), expected.output, atol=1e-5, rtol=1e-5)
            state = expected.state


def test_int8_is_near():
    model = built(size=64)
    with torch.no_grad():
        memory, tokens = model.encode(SOURCE), torch.tensor([1, 1, 1])
        exact, rounded = (Engine(model.decoder, each).begin(memory).step(tokens, None) for each in ("float32", "int8"))
    assert 0 < (exact - rounded).abs().max() < 0.05 * exact.abs().max()


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
        ("transformer", {"norm_embedding": True}, "needs an embedding without a norm"),
        ("transformer", {"embedding": 6}, "needs an embedding as wide as its layers"),
        ("additive+sparsemax", {}, "needs Softmax and Everywhere, got Sparsemax"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
