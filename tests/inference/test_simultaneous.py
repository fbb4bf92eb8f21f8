from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.types import Memory
from regard.config import Search
from regard.data.text.tokenizers import KINDS
from regard.errors import ConfigError, RefusedError
from regard.inference.ensemble.model import Ensemble
from regard.inference.simultaneous import covers, greedy, join_weights
from regard.models.decoders import DecoderMemory

from ..decoding.streaming.models import ONE_WAY, TEXTS, answer, stopping, trained


def cut(text, places):
    ends = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[first:last] for first, last in pairwise(ends)]


@pytest.mark.unhooked  # many models and steps, whose shapes other tests check
@settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(ONE_WAY)),
    attention=st.sampled_from(["monotonic", "mocha"]),
    tokens=st.sampled_from(KINDS),
    seed=st.integers(0, 99),
    text=st.sampled_from(TEXTS),
    places=st.lists(st.integers(0, 99), max_size=9),
)
def test_what_is_written_while_the_source_arrives_is_the_answer_to_the_whole(name, attention, tokens, seed, text, places):
    model = trained(attention, tokens, seed, **ONE_WAY[name])
    found = list(model.listen(cut(text, places)))
    assert "".join(found) == answer(model, text, beam=1)
    assert all(found)


@pytest.mark.parametrize("name", sorted(ONE_WAY))
def test_every_kind_of_model_that_may_write_early_does_so_in_the_right_shapes(name):
    model = trained("mocha", search=Search(max_length=3), **ONE_WAY[name])
    assert "".join(model.listen(["Tom ", "chases"])) == answer(model, "Tom chases")


def listening(model, pieces):
    """What comes in and what goes out, in its order."""
    order = []

    def arriving():
        for piece in pieces:
            order.append(("in", piece))
            yield piece
        order.append(("in", None))

    for piece in model.listen(arriving()):
        order.append(("out", piece))
    return order


def test_a_piece_goes_out_before_the_source_has_ended():
    model = stopping()
    order = listening(model, ["Tom ", "chases ", "Jerry"])
    assert [way for way, _ in order[:2]] == ["in", "out"]
    said = "".join(piece for way, piece in order if way == "out")
    assert said == answer(model, "Tom chases Jerry")


def test_an_answer_may_not_outrun_what_a_source_so_long_may_get():
    model = stopping(search=Search(max_length=50))
    order = listening(model, ["Tom ", "chases ", "Jerry"])
    places = [place for place, (way, _) in enumerate(order) if way == "in"]
    written = [later - earlier - 1 for earlier, later in pairwise(places)]
    assert written == [3 * 2 + 10, 3, 0]  # a word and the end to come; another word; a third that may still go on
    assert len(order) - places[-1] - 1 == 3


def test_an_attention_that_stops_nowhere_waits_for_the_end():
    model = stopping()
    torch.nn.init.constant_(model.model.decoder.cross.score.r, -100.0)
    order = listening(model, ["Tom ", "chases ", "Jerry"])
    assert [way for way, _ in order[:5]] == ["in", "in", "in", "in", "out"]


def test_the_source_is_left_unread_when_the_answer_has_ended():
    model = stopping(search=Search(max_length=50, forced_bos=2 + 2))
    end = model.model.decoder.output.bias
    torch.nn.init.constant_(model.model.decoder.embedding.table.weight, 0.0)
    with torch.no_grad():
        end[2] = 100.0
    order = listening(model, ["Tom ", "chases ", "Jerry"])
    assert [way for way, _ in order] == ["in", "out"]


WAITING = {
    "looks at all of it": trained("additive", bidirectional=False, initial="zeros"),
    "it has no attention": trained("none", bidirectional=False),
    "begins with the encoder's last state": trained("monotonic", bidirectional=False),
    "reads from both ends": trained("monotonic", initial="zeros"),
    "scales what it reads by the length": trained("monotonic", bidirectional=False, decoder="convolution"),
}


@pytest.mark.parametrize("words", list(WAITING))
def test_a_model_that_needs_the_whole_source_says_why_before_it_is_read(words):
    with pytest.raises(RefusedError, match=f"has to wait for the whole source: .*{words}.*; ask it with predict"):
        WAITING[words].listen(iter(()))


def test_an_ensemble_takes_a_source_as_one():
    two = [stopping().model, stopping().model]
    assert covers(Ensemble(two)).startswith("Ensemble takes it as one")
    assert covers(two[0]) is None


@pytest.mark.parametrize(
    ("search", "beam", "words"),
    [
        (Search(), 3, "follows one hypothesis, got a beam of 3: .* give beam=1"),
        (Search(block_ngrams=2), 1, "needs search.block_ngrams=0 and search.precision=float32, got 2 and auto"),
        (Search(precision="int8"), 1, "got 0 and int8"),
        (Search(unknown="copy"), 1, "search.unknown=copy replaces words"),
    ],
)
def test_other_searches_than_the_greedy_one_are_refused(search, beam, words):
    with pytest.raises(ConfigError, match=words):
        greedy(search, beam)
    with pytest.raises(ConfigError, match=words):
        trained("monotonic", search=search, bidirectional=False, initial="zeros").listen(["Tom"], beam=beam)


def test_a_task_that_rewrites_its_source_has_to_wait():
    from regard import tasks

    model = stopping()
    model.task = tasks.bind("inflect")
    with pytest.raises(RefusedError, match="the task inflect rewrites a source before it is read"):
        list(model.listen(["Tom"]))


def test_memories_are_put_behind_each_other():
    first, second = (
        DecoderMemory(
            {"decoder.cross": Memory(torch.ones(1, 1, keys, 2), torch.zeros(1, 1, keys, 3), torch.ones(1, keys) > 0)}
        )
        for keys in (2, 1)
    )
    assert join_weights(None, first) is first
    kept = join_weights(first, second).memories["decoder.cross"]
    assert [tuple(each.shape) for each in kept[:3]] == [(1, 1, 3, 2), (1, 1, 3, 3), (1, 3)]
