import gc
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.positions.learned import Learned
from regard.data.batch import pad
from regard.data.special_tokens import EOS
from regard.decoding import beam as reference
from regard.decoding import greedy
from regard.decoding.engines.cpp import convolution, recurrent, search, transformer
from regard.decoding.engines.eager.beam import beam

from ..eager.test_convolution import built as convolutional_model
from ..eager.test_recurrent import built as recurrent_model
from ..eager.test_transformer import built as transformer_model
from ..test_select import SOURCE, alike

ENGINES = {"transformer": transformer.Engine, "recurrent": recurrent.Engine, "convolution": convolution.Engine}
MODELS = {"transformer": transformer_model, "recurrent": recurrent_model, "convolution": convolutional_model}


def read(kind, seed=0, **options):
    """A model with some weights of its own, and what it remembers of the sources."""
    model = MODELS[kind](**options)
    torch.manual_seed(seed)
    for each in model.decoder.parameters():
        torch.nn.init.normal_(each, std=0.6)
    with torch.no_grad():
        return model.decoder, model.encode(SOURCE)


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(list(MODELS)),
    seed=st.integers(0, 10**6),
    beams=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    data=st.data(),
)
def test_it_finds_what_the_reference_finds(kind, seed, beams, alpha, data):
    decoder, memory = read(kind, seed, layers=1)
    length = data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=4))
    options = {"beams": beams, "best": data.draw(st.integers(1, beams)), "length": length, "length_penalty": alpha}
    found = beam(ENGINES[kind](decoder), memory, **options)
    if beams == 1:
        right = greedy(decoder, memory, length=length)
        assert [each[0].tokens for each in found] == [each.tokens for each in right]
    else:
        alike(found, reference(decoder, memory, **options), tolerance=1e-4)


@pytest.mark.parametrize("kind", MODELS)
def test_of_equally_likely_tokens_the_leftmost_is_written(kind):
    decoder, memory = read(kind, 3, tie_embeddings=False)
    with torch.no_grad():
        decoder.output.weight[8:12] = decoder.output.weight[4:8]
        decoder.output.bias[8:12] = decoder.output.bias[4:8]
    found = beam(ENGINES[kind](decoder), memory, beams=1, length=12)
    written = {token for each in found for token in each[0].tokens}
    assert not written & set(range(8, 12))
    first = beam(ENGINES[kind](decoder), memory, beams=4, best=4, length=1)[0]
    ties = [(one.tokens[0], other.tokens[0]) for one, other in itertools.pairwise(first) if one.score == other.score]
    assert ties
    assert all(left < right for left, right in ties)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("kind", MODELS)
def test_several_threads_find_the_same(kind, precision, two_threads):
    model = MODELS[kind](hidden_size=64, target=600)
    with torch.no_grad():
        memory = model.encode(pad([[4 + (place * row) % 7 for place in range(40 - row)] for row in range(8)]))
    engine = ENGINES[kind](model.decoder, precision)
    found = beam(engine, memory, beams=20, best=3, length=12)
    torch.set_num_threads(1)
    alike(found, beam(engine, memory, beams=20, best=3, length=12))


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kind", MODELS)
def test_an_output_that_is_no_distribution_is_refused(kind, beams):
    decoder, memory = read(kind)
    with torch.no_grad():
        decoder.output.bias[5] = float("nan")
    with pytest.raises(ValueError, match="decoding needs an output that gives some token a probability, got NaN"):
        beam(ENGINES[kind](decoder), memory, beams=beams, length=4)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_sentence_without_a_way_on_says_at_which_step(beams):
    decoder, memory = read("recurrent")
    with torch.no_grad():
        decoder.output.bias[2:] = float("-inf")
    with pytest.raises(ValueError, match="decoding needs a possible token at step 1, and all are forbidden"):
        beam(recurrent.Engine(decoder), memory, beams=beams, length=4)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_place_without_a_vector_is_refused_when_it_is_reached(beams):
    decoder, memory = read("transformer")
    decoder.embedding.positions = Learned(8, limit=5)
    with torch.no_grad():
        decoder.output.bias[EOS] = -1e4
    engine = transformer.Engine(decoder)
    assert len(beam(engine, memory, beams=beams, length=5)[0][0].tokens) == 5
    with pytest.raises(ValueError, match="Learned has vectors for 5 positions, and met position 6"):
        beam(engine, memory, beams=beams, length=8)
    steps = engine.begin(memory)
    for _ in range(5):
        steps.step(torch.tensor([4, 4, 4, 4]), None)
    with pytest.raises(ValueError, match="met position 6"):
        steps.step(torch.tensor([4, 4, 4, 4]), None)


def test_a_batch_that_is_over_is_let_go_of(monkeypatch):
    decoder, memory = read("transformer")
    engine, ended = transformer.Engine(decoder), []
    code = engine.code
    monkeypatch.setattr(search, "finalize", lambda _, end, handle: ended.append((end, handle)))
    steps = engine.begin(memory)
    assert ended == [(code.regard_end, steps.handle)]
    code.regard_end(steps.handle)
    del steps
    gc.collect()


def test_room_that_holds_no_target_gives_none():
    room = search.allocate_targets(2, 3, 4)
    room.lengths[1, 0], room.tokens[1, 0, :2], room.logprobs[1, 0, :2] = 2, (7, EOS), (-0.5, -0.25)
    room.scores[1, 0], room.normalised[1, 0], room.finished[1, 0] = -0.75, -0.375, True
    assert room.of(0) == []
    assert [tuple(each)[:5] for each in room.of(1)] == [([7, EOS], -0.75, -0.375, [-0.5, -0.25], True)]
    assert np.array_equal(room.lengths, [[0, 0, 0], [2, 0, 0]])


def test_a_source_alone_finds_what_it_finds_in_a_batch():
    model = transformer_model()
    engine = transformer.Engine(model.decoder)
    with torch.no_grad():
        alone, together = model.encode(pad([[7, 2]])), model.encode(SOURCE)
    alike(beam(engine, alone, beams=3, length=6), beam(engine, together, beams=3, length=6)[1:2])
