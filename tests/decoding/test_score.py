import math

import pytest
import torch

from regard.data.batch import pad
from regard.decoding import beam, greedy, rate

from .decoders import Recurrent, Transformer, by_hand, sources, table

DECODERS = [Recurrent, Transformer]


@pytest.mark.parametrize("kind", DECODERS)
def test_every_token_is_rated_as_step_by_step(kind):
    decoder = kind(sharpness=1.0)
    memory = decoder.remember(sources(3))
    targets = [[5, 6, 7, 2], [2], [4, 4]]
    rated = rate(decoder, memory, pad(targets))
    for sentence, target in enumerate(targets):
        logprobs = by_hand(decoder, memory, sentence, target)
        assert rated.logprobs[sentence].tolist() == pytest.approx(logprobs + [0.0] * (4 - len(target)), abs=1e-6)
        assert rated.scores[sentence].item() == pytest.approx(sum(logprobs), abs=1e-6)


@pytest.mark.parametrize("kind", DECODERS)
def test_what_search_found_has_the_score_that_search_gave_it(kind):
    """N6, for every hypothesis of the beam and the target of greedy search."""
    decoder = kind(sharpness=1.0)
    memory = decoder.remember(sources(10))
    rounds = [greedy(decoder, memory, length=9), *zip(*beam(decoder, memory, beams=4, best=4, length=9), strict=True)]
    for found in rounds:
        rated = rate(decoder, memory, pad([each.tokens for each in found]))
        assert rated.scores.tolist() == pytest.approx([each.score for each in found], rel=1e-6, abs=1e-6)


def test_by_hand_each_token_has_the_log_of_its_chance():
    decoder = table({1: {5: 0.5, 2: 0.5}, 5: {6: 0.25, 4: 0.75}}, sources=2)
    rated = rate(decoder, decoder.memory, pad([[5, 6, 2], [2]]))
    half, quarter = math.log(0.5), math.log(0.25)
    assert rated.logprobs.tolist() == [pytest.approx([half, quarter, 0]), pytest.approx([half, 0, 0])]
    assert rated.scores.tolist() == pytest.approx([half + quarter, half])


def test_what_is_impossible_has_score_minus_infinity():
    decoder = table({1: {5: 1.0}})
    assert rate(decoder, decoder.memory, pad([[4, 2]])).scores.tolist() == [-math.inf]


def test_targets_of_nothing_have_score_nought():
    rated = rate(Recurrent(), torch.zeros(2, 1), pad([[], []]))
    assert rated.logprobs.shape == (2, 0)
    assert rated.scores.tolist() == [0, 0]


def test_a_target_too_many_is_an_error():
    decoder = Recurrent()
    with pytest.raises(ValueError, match="one target for each source, got 3 targets and 2 sources"):
        rate(decoder, decoder.remember(sources(2)), pad([[2]] * 3))
