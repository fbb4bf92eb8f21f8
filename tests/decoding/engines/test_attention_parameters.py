"""Engines with parameters of stages, and with components of a user: what an engine covers equals the decoder itself."""

from functools import partial

import pytest
import torch

from regard.attention import Attention, Encoded, MultiHead, ScaledDot
from regard.config.parameters import read_parameters
from regard.decoding.engines.cpp.encoder import build_memory_projection
from regard.decoding.engines.eager.modules import EagerEngine
from regard.decoding.engines.select import select_engine
from regard.models.attention_factory import build_attention
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer

pytestmark = pytest.mark.unhooked

DECODERS = {
    "recurrent": partial(Recurrent, 11, 16, 16),
    "convolution": partial(Convolution, 11, 16, 16, layers=2),
    "transformer": partial(Transformer, 11, 16, 16, layers=2, heads=4),
}
HEADS = [
    ("key_heads", "1"),
    ("key_heads", "2"),
    ("merge", "sum"),
    ("merge", "mean"),
    ("sum_scores", "true"),
    ("output", "false"),
]
CASES = [
    ("recurrent", "scaled_dot", "scale", "0.3"),
    ("recurrent", "additive", "hidden", "24"),
    ("recurrent", "concat", "tanh", "false"),
    ("recurrent", "entmax", "alpha", "1.3"),
    ("recurrent", "local_p", "width", "2"),
    ("recurrent", "memory_network", "hops", "2"),
    *((kind, "transformer", *pair) for kind in DECODERS for pair in HEADS),
    *((kind, "transformer+scaled_dot", "scale", "0.2") for kind in DECODERS),
]


def built(kind, make):
    decoder = DECODERS[kind](attention=make).eval()
    for parameter in decoder.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    keep = torch.arange(6) < torch.tensor([[6], [4], [2]])
    return decoder, decoder.remember(Encoded(torch.randn(3, 6, 16), keep, (torch.randn(3, 1, 16),) * 2))


def check(decoder, memory, compiled):
    target = torch.randint(3, 8, (3, 5))
    expected = decoder(target, memory).output.log_softmax(-1)
    steps, outputs = select_engine(decoder, memory, compiled=compiled).begin(memory), []
    for place, tokens in enumerate(target.unbind(1)):
        outputs.append(torch.as_tensor(steps.step(tokens.contiguous(), None if place == 0 else torch.arange(3))).clone())
    torch.testing.assert_close(torch.stack(outputs, dim=1).log_softmax(-1), expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("kind", "name", "parameter", "value"), CASES)
def test_an_engine_heeds_parameters(kind, name, parameter, value, compiled):
    parameters = read_parameters(name, {parameter: value}, "model.attention.", [])
    check(*built(kind, partial(build_attention, name, parameters=parameters)), compiled)


class Doubled(ScaledDot):
    """A user's score that derives from one of ours."""

    def __call__(self, query, prepared):
        return 2 * super().__call__(query, prepared)


class Scoped(Attention):
    """A user's mechanism that derives from ours, and calls it by other means than its forward."""

    def merge(self, context):
        return 2 * super().merge(context)


class Heads(MultiHead):
    """A user's heads, whose memory is not ours."""

    def sides(self, data, values):
        key, value = super().sides(data, values)
        return 2 * key, value


@torch.no_grad()
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize(
    "make",
    [partial(Attention, score=Doubled()), Scoped, partial(Heads, heads=4), partial(MultiHead, heads=4, score=Doubled())],
)
def test_what_derives_from_ours_is_called_as_it_is(kind, make, compiled):
    decoder, memory = built(kind, make)
    check(decoder, memory, compiled)
    if kind == "transformer":
        assert isinstance(select_engine(decoder, memory, compiled=compiled), EagerEngine)
        assert build_memory_projection(decoder) is None
