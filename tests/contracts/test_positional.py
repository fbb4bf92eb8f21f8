"""What must hold for every score that looks at positions, and for the decoders that tell it where they stand."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from regard import registry
from regard.attention import Encoded, MultiHead
from regard.attention.score import is_positional
from regard.models.attention_factory import build_attention
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer
from regard.tree import repeat

POSITIONAL = [name for name in registry.names("score") if is_positional(registry.find(name, "score"))]
DECODERS = {
    "luong": partial(Recurrent, 9, 6, 4),
    "luong without feeding": partial(Recurrent, 9, 6, 4, input_feeding=False),
    "bahdanau": partial(Recurrent, 9, 6, 4, order="bahdanau"),
    "transformer": partial(Transformer, 9, 6, 4, heads=2),
}
KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])
TARGET = torch.tensor([[1, 4, 5], [1, 6, 2]])
every_score = pytest.mark.parametrize("name", POSITIONAL)


def test_some_scores_look_at_positions():
    assert {"relative", "transformer_xl", "t5", "alibi", "rotary"} <= set(POSITIONAL)


@every_score
@pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS)
def test_a_decoder_finds_the_same_at_every_step_and_in_every_beam(name, make):
    decoder = make(attention=partial(build_attention, name)).eval()
    memory = decoder.remember(Encoded(torch.randn(2, 4, 6), KEEP, (torch.randn(2, 1, 6),) * 2))
    expected, state, found = decoder(TARGET, memory).output, repeat(decoder.start(memory), 2), []
    for token in repeat(TARGET, 2).unbind(1):
        step = decoder.step(token, memory, state)
        state = step.state
        found.append(step.output)
    assert_close(torch.stack(found, dim=1), repeat(expected, 2))


@every_score
@pytest.mark.parametrize("key_heads", [1, 4])
def test_a_memory_that_grows_equals_all_at_once(name, key_heads):
    heads = MultiHead(16, heads=4, key_heads=key_heads, score=name, scope="causal")
    data = torch.randn(2, 6, 16)
    expected, memory = heads(data, heads.remember(data)).context, None
    for chunk in data.split((1, 2, 1, 2), dim=1):
        memory = heads.extend(memory, chunk)
        first = memory.keys.shape[2] - chunk.shape[1]
        assert_close(heads(chunk, memory).context, expected[:, first : memory.keys.shape[2]])


@every_score
def test_it_matters_where_a_query_stands(name):
    heads = MultiHead(16, heads=4, score=name)
    assert heads.positional
    memory, query = heads.remember(torch.randn(2, 5, 16)), torch.randn(2, 1, 16)
    with torch.no_grad():
        here, there = (heads(query, memory, offset=offset, weights=True).weights for offset in (0, 3))
    assert not torch.allclose(here, there, atol=1e-4)
