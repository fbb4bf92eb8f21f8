from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.config import Search
from regard.data.text.tokenizers import KINDS
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.streaming.stable_text import StableText
from regard.errors import ConfigError
from regard.inference.streaming import pieces, stream, streamable

from ..decoding.streaming.models import DECODERS, TEXTS, answer, trained


@pytest.mark.unhooked  # many models and steps, whose shapes other tests check
@settings(max_examples=25)
@given(
    decoder=st.sampled_from(DECODERS),
    attention=st.sampled_from(["additive", "monotonic", "none"]),
    tokens=st.sampled_from(KINDS),
    seed=st.integers(0, 99),
    beam=st.integers(1, 4),
    text=st.sampled_from(TEXTS),
)
def test_the_pieces_together_are_the_answer(decoder, attention, tokens, seed, beam, text):
    model = trained(attention, tokens, seed, decoder=decoder, encoder=decoder)
    found = list(model.stream(text, beam=beam))
    assert "".join(found) == answer(model, text, beam=beam)
    assert all(found)


@pytest.mark.parametrize("decoder", DECODERS)
def test_greedy_search_gives_every_word_as_it_comes(decoder):
    model = trained(decoder=decoder, encoder=decoder, search=Search(max_length=8))
    [prediction] = model.predict(["Tom chases Jerry"])
    assert len(list(model.stream("Tom chases Jerry"))) == len(prediction.target) - prediction.target.count("<eos>") > 3


@pytest.mark.parametrize(
    ("wish", "beam"), [({"prefix": "汤"}, 1), ({"include": ["杰"]}, 1), ({"exclude": ["条", "瑞"]}, 2)], ids=str
)
def test_what_an_answer_must_hold_it_holds(wish, beam):
    model = trained(search=Search(max_length=5, block_ngrams=2))
    found = "".join(model.stream("Tom chases Jerry", beam=beam, **wish))
    assert found == answer(model, "Tom chases Jerry", beam=beam, **wish) != answer(model, "Tom chases Jerry", beam=beam)


@pytest.mark.parametrize(
    "search", [Search(coverage_penalty=0.4, beam=3), Search(coverage_penalty=0.4), Search(forced_bos=5)], ids=str
)
def test_settings_of_the_search_are_heeded(search):
    model = trained(search=replace(search, max_length=8))
    assert "".join(model.stream("Tom chases Jerry")) == answer(model, "Tom chases Jerry")


@pytest.mark.filterwarnings("ignore:input.1 has nothing in it that the model knows")
def test_an_empty_text_and_an_empty_answer_are_texts():
    model = trained()
    assert "".join(model.stream("")) == answer(model, "")
    assert list(pieces(StableText(model.text), [])) == []
    model.config = replace(model.config, search=Search(max_length=1, forced_bos=4))
    assert "".join(model.stream("Tom")) == answer(model, "Tom")


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (Search(mbr="chrf"), "search.mbr=chrf compares whole answers"),
        (Search(beam=4, beam_groups=2), "search.beam_groups=2 are there to differ"),
        (Search(unknown="copy"), "search.unknown=copy replaces words when the answer is whole"),
    ],
    ids=str,
)
def test_a_search_that_needs_the_whole_answer_is_refused_before_it_begins(search, words):
    with pytest.raises(ConfigError, match=words):
        streamable(search)
    with pytest.raises(ConfigError, match=words):
        trained(search=search).stream("Tom")


def test_whoever_records_gets_what_predict_would_give():
    model = trained()
    with regard.record(model) as recorder:
        found = "".join(model.stream("Tom chases Jerry"))
    assert recorder.trace().example().axes["target"].text == found


def test_nothing_is_computed_before_the_first_piece_is_asked_for():
    asked = []
    model = trained()
    model.model.encode = lambda source: asked.append(source)
    stream(model, "Tom", 1, ConstraintSpec())
    assert asked == []
