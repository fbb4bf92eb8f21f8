import json
from dataclasses import replace

import pytest
import torch

from regard.data.modality import SourceCodec, TargetCodec
from regard.data.special_tokens import UNK
from regard.errors import DataError, DataWarning
from regard.tasks.answer.batch import UNKNOWN
from regard.tasks.answer.codec import StoryCodec
from regard.tasks.answer.config import StoryData
from regard.tasks.answer.records import StoryQuestion


def test_it_is_a_codec_of_both_sides(codec):
    assert isinstance(codec, SourceCodec)
    assert isinstance(codec, TargetCodec)
    example = codec.encode(codec.read("Anna went to the garden.\tWhere is Anna?"))
    assert codec.pieces(example) == codec.axis(example).labels == ["Anna went to the garden."]
    assert (codec.length(example), codec.grid(example), example.label) == (1, None, None)
    assert codec.decode([0]) == codec.answers[0]
    inputs = codec.example_inputs([3, 5], torch.Generator())
    assert inputs.keep.sum(1).tolist() == [3, 5]
    assert set(codec.dynamic_axes) == set(inputs._fields)


def test_of_a_long_story_the_last_sentences_are_read_and_what_was_cut_is_said(codec, stories):
    short = replace(codec, max_sentences=2)
    story = StoryQuestion(("One.", "Anna went home.", "Boris ran."), "Where is Anna?", facts=(0, 2), where="t:9")
    with pytest.warns(DataWarning, match="t:9 has a story of 3 sentences, and the last 2 are read .* 1 at its beginning"):
        example = short.encode(story)
    assert (example.cut, example.facts, short.pieces(example)) == (1, (1,), ["Anna went home.", "Boris ran."])
    with pytest.warns(DataWarning, match=r"have more than 1 words \(data.max_words\)"):
        assert [len(sentence) for sentence in replace(codec, max_words=1).encode(story).story] == [1, 1, 1]
    assert short.adapt(StoryData(max_sentences=9)).max_sentences == 9


def test_an_answer_that_was_never_seen_has_no_class(codec, stories):
    assert codec.encode(replace(stories[0], answer="moon")).label == UNKNOWN
    assert codec.encode(replace(stories[0], answer=None)).label is None


def test_words_that_no_story_had_are_unknown(codec):
    strange = StoryQuestion(("Xyzzy plugh.",), "Where is Anna?")
    assert set(codec.encode(strange).story[0]) == {UNK}
    assert not codec.is_known(strange)
    assert codec.is_known(StoryQuestion(("Xyzzy garden.",), "Where is Anna?"))


def test_one_answer_to_everything_is_refused(stories):
    with pytest.raises(DataError, match="question answering needs 2 different answers or more, got yes"):
        StoryCodec.fit([replace(stories[0], answer="yes")], StoryData())


def test_it_is_saved_and_loaded(codec, stories, tmp_path):
    codec.save(tmp_path)
    again = StoryCodec.load(tmp_path)
    assert again.encode_all(stories).examples == codec.encode_all(stories).examples


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": 2}, "it is of another format"),
        ({"answers": None}, "answers is missing or of the wrong kind"),
        ({"answers": [""]}, "answers need to be words"),
        ({"max_words": 0}, "max_sentences and max_words need to be 1 or more"),
    ],
)
def test_settings_that_are_none_are_refused(codec, tmp_path, change, text):
    codec.save(tmp_path)
    path = tmp_path / "codec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=f"a codec of stories with questions, format 1: {text}"):
        StoryCodec.load(tmp_path)
