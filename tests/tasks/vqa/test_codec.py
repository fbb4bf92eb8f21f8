import json

import pytest
import torch

from regard.data.image.synthetic.questions import draw
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.special_tokens import EOS, UNK
from regard.errors import DataError
from regard.tasks.vqa.codec import QuestionCodec
from regard.tasks.vqa.config import VqaData
from regard.tasks.vqa.data import PictureQuestion
from regard.tasks.vqa.synthetic import SyntheticQuestion

DATA = VqaData(height=16, width=16, max_question_length=6)


@pytest.fixture
def records(tmp_path):
    (tmp_path / "a.png").write_bytes(png(torch.rand(3, 16, 16)))
    lines = [("What is it?", "a star"), ("is it red?", "no"), ("is it blue?", " yes ")]
    return [
        PictureQuestion(Record("a.png", answer, f"{tmp_path / 't.tsv'}:{n}"), text)
        for n, (text, answer) in enumerate(lines, 1)
    ]


@pytest.fixture
def codec(records):
    return QuestionCodec.fit(records, DATA, 8)


def test_questions_become_tokens_and_answers_numbers(records, codec):
    assert codec.answers == ("a star", "no", "yes")
    examples, report = codec.encode_all(records)
    assert [example.labels for example in examples] == [[0], [1], [2]]
    assert [len(example.question) for example in examples] == [5, 5, 5]  # what is it ? and the end
    assert all(example.question[-1] == EOS for example in examples)
    assert examples[1].question[0] == examples[2].question[0]
    assert (report.read, report.encoded, report.unknown) == (3, 3, 0)
    assert codec.encode(records[0]) == examples[0]


def test_a_question_without_an_answer_has_no_label(records, codec):
    asked = PictureQuestion(records[0].picture._replace(target=None), "is it square?")
    example = codec.encode(asked)
    assert example.labels is None
    assert example.question.count(UNK) == 1


def test_case_counts_only_where_it_is_asked_for(records, codec):
    assert codec.encode(records[0]).question[0] not in (UNK, EOS)
    exact = QuestionCodec.fit(records, VqaData(height=16, width=16, lowercase=False), 8)
    asked = PictureQuestion(records[0].picture, "what is it?")
    assert exact.encode(asked).question[0] == UNK
    assert codec.encode(asked).question[0] != UNK


def test_a_long_question_is_cut_or_dropped(records, codec):
    long = PictureQuestion(records[0].picture, "is it red red red red?")
    cut, dropped = codec.encode_all([long, records[1]], "truncate"), codec.encode_all([long, records[1]], over_long="drop")
    assert (len(cut.examples[0].question), cut.report.cut_sources) == (6, 1)
    assert (len(dropped.examples), dropped.report.dropped) == (1, 1)
    assert codec.select_fitting([long, records[1]]) == [1]
    assert codec.is_known(long)
    assert not codec.fits(long)
    assert codec.fits(records[1])
    assert codec.max_source_length == 6


def test_a_question_of_unknown_words_is_not_known(records, codec):
    assert not codec.is_known(PictureQuestion(records[0].picture, "xyzzy plugh"))
    with pytest.raises(DataError, match=r"gone\.png"):
        codec.is_known(PictureQuestion(Record("gone.png", None, "input:1"), "is it red?"))


def test_words_say_what_of_the_question_they_cover(records, codec):
    example = codec.encode(records[0])
    pieces = codec.words(example)
    assert [each.text for each in pieces] == ["what", "is", "it", "?", "<eos>"]
    assert [(each.start, each.end) for each in pieces] == [(0, 4), (5, 7), (8, 10), (10, 11), (11, 11)]
    assert len(pieces) == len(example.question)


def test_answers_that_were_never_seen_are_listed_with_their_lines(records, codec):
    strange = [PictureQuestion(each.picture._replace(target="maybe"), each.question) for each in records * 2]
    with pytest.raises(DataError, match=r"6 answers were not there to be learned: .*t\.tsv:1 'maybe', .* and 1 more; there"):
        codec.encode_all(strange)


def test_pictures_that_are_missing_are_listed_once(records, codec):
    gone = [PictureQuestion(each.picture._replace(source="gone.png"), each.question) for each in records]
    with pytest.raises(DataError, match=r"1 of 1 pictures are missing: .*t\.tsv:1 gone\.png"):
        codec.encode_all(gone)


@pytest.mark.parametrize(("count", "said"), [(0, "none"), (1, "a star")])
def test_one_answer_to_everything_is_refused(records, count, said):
    with pytest.raises(DataError, match=f"visual question answering needs 2 different answers or more, got {said}"):
        QuestionCodec.fit(records[:count], DATA, 8)


def test_a_question_has_room_for_a_token(records):
    with pytest.raises(ValueError, match="max_question_length needs at least 2: a token and the end"):
        QuestionCodec.fit(records, VqaData(max_question_length=1), 8)


def test_it_is_saved_and_loaded(records, codec, tmp_path):
    files = codec.save(tmp_path / "run")
    assert sorted(path.name for path in files)[0] == "codec.json"
    again = QuestionCodec.load(tmp_path / "run")
    assert again.saved() == codec.saved()
    assert (again.answers, again.lowercase, again.max_question_length, again.over_long) == (codec.answers, True, 6, "drop")
    assert again.encode_all(records).examples == codec.encode_all(records).examples
    assert again.adapt(VqaData(max_question_length=9, over_long="truncate")).max_question_length == 9


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": 2}, "it is of another format"),
        ({"reads": "pictures"}, "it is of another format"),
        ({"answers": None}, "answers is missing or of the wrong kind"),
        ({"answers": [""]}, "answers need to be words"),
        ({"answers": []}, "answers need to be words"),
        ({"over_long": "keep"}, "over_long is 'keep', and needs to be truncate or drop"),
    ],
)
def test_settings_that_are_none_are_refused(codec, tmp_path, change, text):
    codec.save(tmp_path)
    path = tmp_path / "codec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=f"a codec of pictures with questions, format 1: {text}"):
        QuestionCodec.load(tmp_path)


def test_a_picture_is_in_one_batch_with_all_of_its_questions():
    drawn = [SyntheticQuestion(each, 16) for each in draw(120, per_scene=6)[0]]
    codec = QuestionCodec.fit([each.record for each in drawn], VqaData(height=16, width=16), 8)
    examples = codec.encode_all([each.record for each in drawn], renderers=drawn).examples
    batches = codec.train_loader(codec.cache_images(examples), 4 * 16 * 16, 0, None)
    scenes = {each.same for each in drawn}
    assert batches.steps_per_epoch() == -(-len(scenes) // 4)
    batch = max((batches.batch(step) for step in range(2)), key=lambda each: each.rows)
    assert len(batch.source.data) == 4
    assert len(batch.question.data) == len(batch.labels.data) == len(batch.about) > 4
    batches.close()
