import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.special_tokens import EOS
from regard.decoding import beam as reference
from regard.decoding import greedy
from regard.decoding.engines.eager.beam import beam
from regard.decoding.engines.eager.modules import EagerEngine

from ...decoders import Recurrent, Table, Transformer, random_table, sources, table


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    vocabulary=st.integers(5, 9),
    beams=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    coarse=st.booleans(),
    data=st.data(),
)
def test_it_finds_what_the_reference_finds_bit_for_bit_ties_and_all(seed, vocabulary, beams, alpha, coarse, data):
    tables = random_table(4, vocabulary, sharpness=2.0, seed=seed).memory
    decoder = Table(tables.round() if coarse else tables)  # rounded logits tie
    length = data.draw(st.lists(st.integers(0, 7), min_size=4, max_size=4))
    options = {
        "beams": beams,
        "best": data.draw(st.integers(1, beams)),
        "length": length,
        "length_penalty": alpha,
    }
    assert beam(EagerEngine(decoder), decoder.memory, **options) == reference(decoder, decoder.memory, **options)


@pytest.mark.parametrize("kind", [Recurrent, Transformer])
def test_a_beam_of_one_is_greedy_search(kind):
    torch.manual_seed(0)
    decoder = kind()
    with torch.no_grad():
        memory = decoder.remember(sources(9))
    found = beam(EagerEngine(decoder), memory, beams=1, length=12)
    assert [each.tokens for (each,) in found] == [each.tokens for each in greedy(decoder, memory, length=12)]


def test_sentences_that_are_done_leave_the_batch():
    decoder = table({1: {4: 1.0}, 4: {4: 0.9, EOS: 0.1}}, sources=2)
    decoder.memory[1, 4, 4] = float("-inf")
    beam(EagerEngine(decoder), decoder.memory, beams=1, length=5)
    assert decoder.sources == [2, 2, 1, 1, 1]


def test_a_sentence_without_a_way_on_is_an_error():
    decoder = table({1: {4: 1.0}, 4: {0: 1.0}})
    with pytest.raises(ValueError, match="decoding needs a possible token at step 2"):
        beam(EagerEngine(decoder), decoder.memory, beams=2, length=5)


def test_nothing_is_found_where_nothing_is_allowed():
    decoder = random_table(2, 6)
    assert [each[0].tokens for each in beam(EagerEngine(decoder), decoder.memory, beams=3, length=0)] == [[], []]
