import pytest
import torch

from regard.decoding.engines.eager.kv_cache import MIN_COMPACTION
from regard.decoding.engines.eager.transformer import Engine, covers
from regard.tree import select

from ....models.small import made
from .walked import SOURCE, near, walked

OPTIONS = {
    "pre": {},
    "post": {"norm": "post"},
    "gelu": {"activation": "gelu"},
    "narrow": {"embedding_size": 6},
    "normed": {"embedding_norm": True},
    "rms": {"norm": "rms"},
    "wider heads, no biases": {"self_attention_size": 12, "bias": False},
}


def built(attention="transformer", **options):
    torch.manual_seed(5)
    return made(attention, **{"encoder": "transformer", "decoder": "transformer", "layers": 2} | options).eval()


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("attention", ["transformer", "additive"])
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    walked(Engine, built(attention, **OPTIONS[kind]))


@pytest.mark.parametrize("width", [1, 5])
def test_long_targets_outgrow_their_room_and_lose_nothing(width):
    model = built(layers=1)
    decoder, generator = model.decoder, torch.Generator().manual_seed(0)
    with torch.no_grad():
        memory = model.encode(SOURCE)
        steps, state, before = Engine(decoder).begin(memory), decoder.start(memory), 1
        for _ in range(MIN_COMPACTION):
            rows = torch.arange(3)[:, None] * before
            parents = (rows + torch.randint(0, before, (3, width), generator=generator)).flatten()
            tokens = torch.randint(4, 13, (3 * width,), generator=generator)
            expected = decoder.step(tokens, memory, select(state, parents))
            found, state, before = steps.step(tokens, parents), expected.state, width
    torch.testing.assert_close(found, expected.output, atol=1e-5, rtol=1e-5)


def test_int8_is_near():
    near(Engine, built(hidden_size=64))


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("bilinear", {"decoder": "recurrent"}, "needs the Transformer decoder, got Recurrent"),
        ("none", {}, "needs as many heads of keys as of queries, joined by concat, and an attention to the source"),
        ("transformer", {"self_attention": "rotary"}, "needs self-attention by scaled_dot and softmax, got "),
        ("additive+sparsemax", {}, "needs Softmax and Everywhere, got Sparsemax"),
        ("transformer", {"gated": True}, "needs an output of its self-attention, and feed-forward networks without gates"),
        ("pointer", {}, "needs an output that is nothing but a projection"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
