import io
import json

import pytest
import torch

from regard.cli._bad_inputs import BadInputs
from regard.cli._journal import Journal, WrittenAnswer
from regard.cli._predict_io import AnswerWriter, Unanswered, windows, write_to_file, write_to_stream
from regard.cli._progress import ProgressLine
from regard.cli.predict import report_end
from regard.decoding.constraints.spec import ConstraintSpec
from regard.errors import DataError
from regard.inference.prediction import Prediction

WORK = {"input": "a", "model": "b", "settings": "c"}


class Model:
    """Turns texts round, the last first, and notes what it was asked; wishes for the impossible it refuses."""

    def __init__(self):
        self.asked, self.done = [], []

    def fits(self, text):
        return "?" not in text

    def fit_all(self, texts):
        return [self.fits(text) for text in texts]

    is_known = fits

    def outcomes(self, texts, *, done, include=(), **options):
        self.asked.append(list(texts))
        self.done.append(done)
        if any(include):
            raise ValueError("this cannot be had")
        for place in reversed(range(len(texts))):
            yield place, [Prediction(texts[place][::-1], -1.0, [], [])]


def inputs(*texts, wish=ConstraintSpec()):
    return [(text, wish) for text in texts]


def test_answers_are_written_in_the_order_of_the_inputs_and_what_is_unknown_is_left_empty():
    stream = io.StringIO()
    assert write_to_stream(AnswerWriter(Model()), inputs("ab", "?", "", "cd", "?"), stream, size=2) == Unanswered(2, 2, 5)
    assert stream.getvalue() == "ba\n\n\ndc\n\n"


def test_what_a_journal_has_is_asked_again_only_with_its_batch_and_keeps_its_answer(tmp_path):
    model = Model()
    with Journal(tmp_path / "out", WORK) as journal:
        for place, text in enumerate(("1\n", "2\n")):
            journal.note(place, WrittenAnswer(text))
        journal.commit_window()
        journal.note(1, WrittenAnswer("4\n"))
    with Journal(tmp_path / "out", WORK) as journal:
        found = write_to_file(
            AnswerWriter(model), inputs("a", "b", "cc", "d", "?"), journal, 2, ProgressLine(None, stream=io.StringIO())
        )
    assert (tmp_path / "out").read_text() == "1\n2\ncc\n4\n\n"
    assert model.asked == [["cc", "d"], []]
    assert model.done == [{1}, set()]
    assert found == Unanswered(1, 5, 5)


def test_more_answers_than_inputs_are_refused(tmp_path):
    with Journal(tmp_path / "out", WORK) as journal:
        journal.note(0, WrittenAnswer("1\n"))
        journal.commit_window()
        with pytest.raises(DataError, match="has more answers than there are inputs; remove it, and start again"):
            write_to_file(AnswerWriter(Model()), inputs(), journal, 2, ProgressLine(None, stream=io.StringIO()))


def test_a_wish_that_cannot_be_had_is_the_users_to_mend():
    with pytest.raises(DataError, match="this cannot be had"):
        write_to_stream(AnswerWriter(Model()), inputs("a", wish=ConstraintSpec(include=("b",))), io.StringIO(), 2)


class Looking(Model):
    """Pictures: one that begins with ! is seen to be damaged by its header, with * when it is decoded."""

    def fits(self, text):
        if text.startswith("!"):
            raise DataError(f"{text} is no picture")
        return True

    def fit_all(self, texts):
        return [self.fits(text) for text in texts]

    def outcomes(self, texts, **options):
        for place, found in super().outcomes(texts, **options):
            if texts[place].startswith("*"):
                raise DataError(f"input:{place + 1}: {texts[place]} is cut off")
            yield place, found


PICTURES = "ab", "*c", "!d", "ef", "gh", "*i", "jk"
ANSWERED = "ba\n\n\nfe\nhg\n\nkj\n"


def test_what_cannot_be_read_is_left_empty_and_told_with_its_line(capsys):
    stream, missed = io.StringIO(), BadInputs("list.txt")
    assert write_to_stream(AnswerWriter(Looking(), bad_inputs=missed), inputs(*PICTURES), stream, size=4) == Unanswered(
        3, 2, 7
    )
    assert stream.getvalue() == ANSWERED
    told = sorted(capsys.readouterr().err.splitlines())
    assert told == [f"regard: list.txt:{line}" for line in ("2: *c is cut off", "3: !d is no picture", "6: *i is cut off")]


def test_what_cannot_be_read_keeps_its_empty_line_in_a_file(tmp_path, capsys):
    missed = BadInputs("list.txt")
    with Journal(tmp_path / "out", WORK) as journal:
        progress = ProgressLine(None, stream=io.StringIO())
        found = write_to_file(AnswerWriter(Looking(), bad_inputs=missed), inputs(*PICTURES), journal, 4, progress)
    assert found == Unanswered(3, 2, 7)
    assert (tmp_path / "out").read_text() == ANSWERED
    assert "list.txt:6: *i is cut off" in capsys.readouterr().err


def test_what_was_answered_before_a_damaged_picture_is_not_asked_again():
    model = Looking()
    list(AnswerWriter(model, bad_inputs=BadInputs("list.txt")).answer_window(inputs("*a", "b", "c", "d")))
    assert model.asked == [["*a", "b", "c", "d"], ["*a"]]


@pytest.mark.parametrize("noted", [{}, {0: "ba\n"}, {0: "ba\n", 1: ""}, {1: "", 2: "fe\n", 3: "hg\n"}])
def test_a_window_is_cut_up_the_same_way_whatever_of_it_is_noted(noted, capsys):
    """A damaged picture leads to other batches: they are the same after a kill, since scores depend on them."""
    window, models = inputs("ab", "*c", "ef", "gh", "ij"), (Looking(), Looking())
    notes = {place: WrittenAnswer(text or "\n", strange=not text) for place, text in noted.items()}
    whole = dict(AnswerWriter(models[0], bad_inputs=BadInputs("list.txt")).answer_window(window))
    rest = dict(AnswerWriter(models[1], bad_inputs=BadInputs("list.txt")).answer_window(window, notes))
    assert models[0].asked == models[1].asked
    assert rest == {place: written for place, written in whole.items() if place not in notes}


@pytest.mark.parametrize("text", ["!a", "*a"])
def test_without_anybody_to_take_note_what_cannot_be_read_is_an_error(text):
    with pytest.raises(DataError, match=r"is no picture|is cut off"):
        write_to_stream(AnswerWriter(Looking()), inputs(text), io.StringIO(), 2)


def test_a_wish_that_cannot_be_had_is_no_picture_that_cannot_be_read():
    with pytest.raises(DataError, match="this cannot be had"):
        write_to_stream(
            AnswerWriter(Model(), bad_inputs=BadInputs("list.txt")),
            inputs("a", "b", wish=ConstraintSpec(include=("c",))),
            io.StringIO(),
            2,
        )


def test_inputs_before_one_that_cannot_be_read_make_a_window():
    def broken():
        yield from "abc"
        raise DataError("d cannot be read")

    found = windows(broken(), 2)
    assert [next(found), next(found)] == [["a", "b"], ["c"]]
    with pytest.raises(DataError, match="d cannot be read"):
        next(found)


def test_boxes_are_told_with_what_is_in_them_and_nothing_found_has_no_map():
    class Finds(Model):
        def outcomes(self, texts, **options):
            found = Prediction(
                "cat 1 2 3 4 0.90", -0.1, ["1,1"], ["cat"], torch.ones(1, 1), [(0, 0)], (1, 1), [(1.0, 2.0, 3.0, 4.0)], [0.9]
            )
            yield 0, [found]
            yield 1, [Prediction("", 0.0, ["1,1"], [], torch.ones(0, 1), [], (1, 1), [], [])]

    stream = io.StringIO()
    write_to_stream(AnswerWriter(Finds(), align=True), inputs("a", "b"), stream, size=2)
    assert stream.getvalue() == "cat 1 2 3 4 0.90\n\ncat\n██\n\n\n"
    stream = io.StringIO()
    write_to_stream(AnswerWriter(Finds(), as_json=True), inputs("a", "b"), stream, size=2)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["answers"][0]["boxes"] == [[1.0, 2.0, 3.0, 4.0]]
    assert (first["answers"][0]["target"], first["answers"][0]["scores"]) == (["cat"], [0.9])
    assert second["answers"][0]["boxes"] == []


def test_a_detector_that_finds_nothing_says_so(capsys):
    class Empty(Model):
        def outcomes(self, texts, **options):
            for place, found in super().outcomes(texts, **options):
                yield place, [found[0]._replace(boxes=[])]

    for texts, text in (
        (["ab"], "nothing was detected that"),
        (["ab", "", "c"], "nothing was detected on 2 of 3 pictures that"),
    ):
        writer = AnswerWriter(Empty())
        report_end(writer, write_to_stream(writer, inputs(*texts), io.StringIO(), size=2), 1.25, quiet=True)
        assert capsys.readouterr().err == f"{text} the model is sure of; --nbest 5 has the boxes that come nearest\n"


def test_the_end_of_many_inputs_is_reported_with_the_time(capsys):
    report_end(AnswerWriter(Model()), Unanswered(0, 0, 1200), 1.25, quiet=False)
    report_end(AnswerWriter(Model()), Unanswered(0, 0, 1), 0.04, quiet=False)
    report_end(AnswerWriter(Model()), Unanswered(0, 0, 1), 0.04, quiet=True)
    assert capsys.readouterr().err == "1,200 lines in 1.2 s\n1 line in 0.0 s\n"


def test_weights_over_sentences_have_a_sentence_on_each_line():
    class Reads(Model):
        def outcomes(self, texts, *, done, **options):
            weights = torch.tensor([[0.1, 0.9], [1.0, 0.0]])
            yield 0, [Prediction("here", -0.1, ["She went.", "He slept."], ["hop 1", "hop 2"], weights)]

    stream = io.StringIO()
    write_to_stream(AnswerWriter(Reads(), align=True), inputs("a"), stream, size=1)
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == [
        "here", "", "          hop 1 hop 2", "She went.          ██", "He slept.    ██", "",
    ]  # fmt: skip
