from collections import Counter
from types import SimpleNamespace

import pytest

from regard.cli._bad_inputs import LISTED, BadInputs, collect_bad_inputs
from regard.config import ImageTextData
from regard.data.image.codec import ImageTextCodec
from regard.data.records import Record
from regard.errors import DataError
from regard.tasks.retrieve.codec import PairCodec


def model(kind):
    return SimpleNamespace(
        codec=kind.fit([Record("1.png", "a star", "t:1"), Record("2.png", "a ring", "t:2")], ImageTextData(), 8)
    )


def test_each_is_told_with_its_line_and_the_last_word_says_that_the_others_are_answered(capsys):
    missed = BadInputs("list.txt")
    missed.note(3, "cut.png", DataError("input:1: cut.png is a PNG picture that cannot be decoded"))
    missed.note(7, "x.png", DataError("there is no file x.png"))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "regard: list.txt:3: cut.png is a PNG picture that cannot be decoded",
        "regard: list.txt:7: there is no file x.png",
    ]
    assert missed.texts == {"cut.png", "x.png"}
    assert missed.summarise(3, 2) == (
        "list.txt:3 has no answer (2 such in all): its picture cannot be read, or its scores are not finite; such answers are "
        "left empty. Correct these lines, and run them again. Everything else is answered"
    )


def test_no_more_than_a_few_are_told_one_by_one(capsys):
    missed = BadInputs("list.txt", has_text=True)
    for number in range(1, LISTED + 3):
        missed.note(number, f"{number}.png", DataError("is empty"))
    assert len(capsys.readouterr().err.splitlines()) == LISTED
    told = missed.summarise(1, LISTED + 2)
    assert f"({LISTED + 2} such in all, the first {LISTED} of which are named above)" in told
    assert "or the model knows none of its words, or they are too many" in told


@pytest.mark.parametrize(("kind", "worded"), [(ImageTextCodec, False), (PairCodec, True)])
def test_a_file_of_pictures_is_taken_note_of(kind, worded):
    missed = collect_bad_inputs(model(kind), None, "list.txt")
    assert (missed.name, missed.has_text) == ("list.txt", worded)
    assert collect_bad_inputs(model(kind), None, None).name == "input"


def test_a_single_input_is_not():
    assert collect_bad_inputs(model(ImageTextCodec), "photo.png", None) is None
    assert (
        collect_bad_inputs(SimpleNamespace(codec=SimpleNamespace(max_source_length=9, reads_files=False)), "Tom", None)
        is None
    )


@pytest.mark.parametrize(
    ("begun", "done"),
    [
        (False, "an answer would be a guess, so it was left empty"),
        (True, "of what is too long the beginning was answered, and the others were left empty"),
    ],
)
def test_the_last_word_of_a_model_that_reads_text_says_why_an_answer_may_be_missing(begun, done):
    missed = collect_bad_inputs(
        SimpleNamespace(codec=SimpleNamespace(max_source_length=9, reads_files=False)), None, "list.txt"
    )
    assert missed.summarise(3, 2000, begun) == (
        "list.txt:3 has nothing in it that the model knows, or more than the 8 tokens that it reads, or scores that are not "
        f"finite (2,000 such in all): {done}; cut what is too long. Everything else is answered"
    )


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        ({"long": 1}, "has more than the 8 tokens that the model reads; its answer was left empty."),
        ({"unknown": 1}, "has nothing in it that the model knows; its answer was left empty."),
        (
            {"long": 2, "unknown": 1, "unscored": 3},
            "has no answer (6 such in all): 1 has nothing in it that the model knows, 2 have more than the 8 tokens that the "
            "model reads, 3 have scores that are not finite; such answers are left empty.",
        ),
    ],
)
def test_what_is_too_long_is_told_apart_from_what_is_unknown(reasons, text):
    missed = BadInputs("a.txt", tokens=8)
    told = missed.summarise(3, sum(reasons.values()), reasons=Counter(reasons))
    assert told == f"a.txt:3 {text} Everything else is answered"
    assert "or more than the 8 tokens" in missed.summarise(3, 9, reasons=Counter(reasons)), "some are of an earlier run"


def test_an_error_keeps_its_place_in_the_sentence_and_no_other_is_called_answered(capsys):
    missed = BadInputs("stories.txt", tokens=9, alone=True)
    missed.note(1, "x", DataError("input:1 has a question without a word"))
    assert capsys.readouterr().err == "regard: stories.txt:1 has a question without a word\n"
    told = missed.summarise(1, 1, reasons=Counter(unreadable=1))
    assert told == "stories.txt:1 has an error that is named above; its answer was left empty"
    assert missed.summarise(1, 2, reasons=Counter(unreadable=2)).endswith("such answers are left empty")
