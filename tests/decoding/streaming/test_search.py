from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import Search
from regard.data.special_tokens import EOS
from regard.decoding.constraints.prefix import Prefix
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Constraints, Guard
from regard.decoding.search import Searcher
from regard.decoding.streaming.search import stream_decided_tokens

from ..decoders import random_table, table


def finder(**search):
    return Searcher(Search(**search), str)


def guard(vocabulary):
    asked = Constraints(Prefix.forced([5]), include=((4,),), exclude=((6,),))
    return Guard([asked], Spelling.numbers(vocabulary), block=3)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 5),
    length=st.integers(0, 8),
    alpha=st.sampled_from([0.0, 1.0, 2.0]),
    coarse=st.booleans(),
    constrained=st.booleans(),
)
def test_what_is_decided_only_grows_and_becomes_what_the_finder_finds(seed, beam, length, alpha, coarse, constrained):
    decoder = random_table(1, 8, sharpness=2.0, seed=seed)
    decoder.memory = decoder.memory.round() if coarse else decoder.memory  # rounded logits tie
    looking, length = finder(beam=beam, length_penalty=alpha), length + 3 * constrained
    told = list(stream_decided_tokens(looking, decoder, decoder.memory, length, guard=guard(8) if constrained else None))
    [[found]] = looking(decoder, decoder.memory, [length], guard=guard(8) if constrained else None)
    assert told[-1] == found.tokens
    for earlier, later in pairwise(told):
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier) or later == told[-1]


def test_greedy_search_decides_a_token_at_each_step():
    decoder = table({1: {4: 0.6, 5: 0.4}, 4: {5: 1.0}, 5: {EOS: 1.0}})
    told = stream_decided_tokens(finder(), decoder, decoder.memory, 9)
    assert next(told) == [4]
    assert decoder.rows == [1]
    assert list(told) == [[4, 5], [4, 5, EOS]]


def test_a_beam_decides_when_its_hypotheses_agree():
    decoder = table({1: {4: 0.6, 5: 0.4}, 4: {6: 0.6, 7: 0.4}, 5: {7: 0.1, 6: 0.1, 5: 0.1}, 6: {EOS: 1.0}, 7: {EOS: 1.0}})
    told = stream_decided_tokens(finder(beam=2), decoder, decoder.memory, 4)
    assert next(told) == [4]
    assert decoder.rows == [1, 2]  # after the first step 4 and 5 are followed, after the second 4 6 and 4 7
    assert list(told) == [[4, 6, EOS]]


def test_gradients_and_modes_stay_as_they_were_between_two_tokens():
    decoder = random_table(1, 8, seed=3)
    for asked in (None, guard(8)):
        for _ in stream_decided_tokens(finder(beam=2), decoder, decoder.memory, 6, guard=asked):
            assert torch.is_grad_enabled()
            assert not torch.is_inference_mode_enabled()


def test_what_knows_its_answer_at_the_end_alone_is_refused():
    decoder = random_table(1, 8)
    for search, words in (({"mbr": "chrf"}, "search.mbr=chrf"), ({"beam": 4, "beam_groups": 2}, "search.beam_groups=2")):
        with pytest.raises(ValueError, match=f"nothing is decided before the end of a search with .*{words}"):
            stream_decided_tokens(finder(**search), decoder, decoder.memory, 6)


def test_one_source_at_a_time():
    decoder = random_table(2, 8)
    with pytest.raises(ValueError, match="what is decided is told of one source, got 2"):
        stream_decided_tokens(finder(), decoder, decoder.memory, 6)
