"""The contracts of every score that looks at positions, and of the decoders that tell it where they stand."""

from functools import partial

import pytest

from regard import registry
from regard.attention.score import is_positional
from regard.models.attention_factory import build_attention
from regard.testing import decoders as contracts

POSITIONAL = [name for name in registry.names("score") if is_positional(registry.find(name, "score"))]
every_score = pytest.mark.parametrize("name", POSITIONAL)


def test_some_scores_look_at_positions():
    assert {"relative", "transformer_xl", "t5", "alibi", "rotary"} <= set(POSITIONAL)


@every_score
@pytest.mark.parametrize("make", contracts.SMALL)
def test_a_decoder_finds_the_same_at_every_step_and_in_every_beam(name, make):
    contracts.check_positional_decoder(partial(build_attention, name), make)


@every_score
@pytest.mark.parametrize("key_heads", [1, 4])
def test_a_memory_that_grows_equals_all_at_once(name, key_heads):
    contracts.check_growing_memory(name, key_heads)


@every_score
def test_it_matters_where_a_query_stands(name):
    contracts.check_position(name)
