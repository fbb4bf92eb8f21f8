import io
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from regard import tasks
from regard.cli._bad_inputs import BadInputs
from regard.cli._predict_io import Unanswered
from regard.cli._streaming import LISTEN, STREAM, answer_stdin, select_streaming, write_streamed
from regard.config import AttentionPart, Data, Model, Search, Train
from regard.decoding.constraints.spec import ConstraintSpec
from regard.errors import ConfigError, DataError
from regard.tasks.translate import Config
from regard.training.loop import train

from ..decoding.streaming.models import answer, stopping, trained

USUAL = dict.fromkeys(["unknown", "out", "trace", "file", "prefix", "constraints"])
USUAL |= {"nbest": 1, "align": False, "as_json": False, "compile": False, "include": (), "exclude": ()}


class Flushed(io.StringIO):
    """What had been written each time that it was flushed."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def flush(self):
        self.seen.append(self.getvalue())


def test_every_piece_is_flushed_and_every_answer_has_its_line():
    model, stream = trained(), Flushed()
    texts = ["Tom chases Jerry", "", "Mary likes Tom"]
    assert write_streamed(model, ((text, ConstraintSpec()) for text in texts), stream) == Unanswered()
    said = [answer(model, texts[0]), "", answer(model, texts[2])]
    assert stream.getvalue().split("\n") == [*said, ""]
    assert len(stream.seen) > 6
    assert said[0].startswith(stream.seen[0])


def test_rows_that_end_their_lines_themselves_get_no_empty_line():
    rows = SimpleNamespace(fits=lambda text: True, stream=lambda text, **options: iter(["time,score\n", "1,2\n"]))
    stream = io.StringIO()
    write_streamed(rows, [("live.csv", ConstraintSpec())], stream)
    assert stream.getvalue() == "time,score\n1,2\n"


def test_what_the_model_knows_nothing_of_is_left_empty():
    stream = io.StringIO()
    assert write_streamed(
        trained(), [("☃ ☂", ConstraintSpec()), ("Tom", ConstraintSpec()), ("☃", ConstraintSpec())], stream
    ) == Unanswered(2, 1)
    assert stream.getvalue().split("\n")[0] == ""


class Looking:
    """Pictures: of one that begins with * nothing is seen before it is decoded."""

    def fits(self, text):
        return True

    def fit_all(self, texts):
        return [self.fits(text) for text in texts]

    def stream(self, text, **wishes):
        if text.startswith("*"):
            raise DataError(f"input:1: {text} is cut off")
        return iter(text)


def test_a_picture_that_cannot_be_read_is_told_with_its_line_and_the_others_are_answered(capsys):
    asked = [(text, ConstraintSpec(prefix="a")) for text in ("ab", "*c", "ad")]
    stream = io.StringIO()
    assert write_streamed(Looking(), asked, stream, BadInputs("list.txt")) == Unanswered(1, 2)
    assert stream.getvalue() == "ab\n\nad\n"
    assert capsys.readouterr().err == "regard: list.txt:2: *c is cut off\n"
    with pytest.raises(DataError, match="is cut off"):
        write_streamed(Looking(), asked, stream)


def test_wishes_are_granted_and_those_that_cannot_be_are_errors_of_the_user():
    model, stream = trained(), io.StringIO()
    write_streamed(model, [("Tom", ConstraintSpec("汤"))], stream)
    assert stream.getvalue().startswith("汤")
    with pytest.raises(DataError, match="the model cannot write the phrase"):
        write_streamed(model, [("Tom", ConstraintSpec(include=("☃",)))], stream)


def listening(monkeypatch, model, raw):
    stream = Flushed()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(raw))))
    return answer_stdin(model, stream), stream.getvalue()


def test_every_line_is_answered_as_if_it_had_been_whole(monkeypatch):
    model = stopping(search=Search(max_length=4))
    found = listening(monkeypatch, model, "Tom chases Jerry\n\nMary likes Tom and Jerry\r\n☃\n \nTom".encode())
    said = [
        answer(model, "Tom chases Jerry"),
        "",
        answer(model, "Mary likes Tom and Jerry"),
        "",
        "",
        answer(model, "Tom"),
        "",
    ]
    assert found == (Unanswered(1, 4), "\n".join(said))


@pytest.mark.filterwarnings("ignore:input.1 has more than the 3 tokens that the model reads")
def test_what_is_left_of_a_line_is_not_the_next_one(monkeypatch):
    model = stopping(search=Search(max_length=3))
    long = "Tom chases Jerry " * 400
    model.codec = replace(model.codec, max_source_length=4)
    found = listening(monkeypatch, model, f"{long}\nTom\n".encode())
    assert found == (Unanswered(1, 1), f"{answer(model, long)}\n{answer(model, 'Tom')}\n")


def test_a_line_that_just_fits_is_not_told_and_one_more_token_is(monkeypatch):
    model = stopping(search=Search(max_length=3))
    model.codec = replace(model.codec, max_source_length=4)
    assert listening(monkeypatch, model, b"Tom chases Jerry\nTom chases Jerry Tom\n")[0] == Unanswered(1, 2)


def test_standard_input_that_is_closed_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="- cannot be read"):
        answer_stdin(stopping(), io.StringIO())


def test_a_refusal_comes_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="got a beam of 4"):
        answer_stdin(stopping(search=Search(beam=4)), io.StringIO())
    with pytest.raises(ConfigError, match=r"search\.mbr=chrf"):
        write_streamed(trained(search=Search(mbr="chrf")), iter(int, 1), io.StringIO())


def test_nothing_asked_for_is_the_usual_way():
    assert select_streaming(False, False, USUAL, "Tom") is None
    assert select_streaming(True, False, USUAL | {"prefix": "a", "file": "f", "unknown": "keep"}, "Tom") == STREAM
    assert select_streaming(False, True, USUAL | {"file": "-"}, None) == LISTEN


def test_both_ways_at_once_are_refused():
    with pytest.raises(ConfigError, match="--listen writes as it goes, as --stream does; give one of the two"):
        select_streaming(True, True, USUAL, None)


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("nbest", 2, "--nbest"),
        ("align", True, "--align"),
        ("unknown", "copy", "--unknown"),
        ("as_json", True, "--json"),
        ("out", "f", "--out"),
        ("trace", "f", "--trace"),
    ],
)
def test_what_is_about_whole_answers_is_refused(name, value, option):
    for chosen, flags in ((STREAM, (True, False)), (LISTEN, (False, True))):
        with pytest.raises(ConfigError, match=f"{chosen} writes an answer before it is whole, and {option} is about"):
            select_streaming(*flags, USUAL | {name: value}, None)


@pytest.mark.parametrize(
    ("name", "value"), [("file", "f"), ("prefix", ""), ("include", ("a",)), ("exclude", ("a",)), ("constraints", "f")]
)
def test_what_is_about_whole_inputs_does_not_go_with_listening(name, value):
    with pytest.raises(ConfigError, match=f"--listen answers standard input .* does not take --{name}; .*or take --stream"):
        select_streaming(False, True, USUAL | {name: value}, None)
    with pytest.raises(ConfigError, match="does not take INPUT"):
        select_streaming(False, True, USUAL, "Tom")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose attention stops at once."""
    directory = tmp_path_factory.mktemp("run")
    attention = AttentionPart("monotonic")
    config = Config(
        data=Data(samples=60, batch_tokens=256),
        model=Model(hidden_size=8, attention=attention, bidirectional=False, initial="zeros"),
        train=Train(max_steps=1),
        search=Search(max_length=12),
    )
    experiment, _ = tasks.experiment("translate", config)
    torch.nn.init.constant_(experiment.model.decoder.cross.score.r, 100.0)
    torch.nn.init.constant_(experiment.model.decoder.output.bias, 0.0)
    with torch.no_grad():
        experiment.model.decoder.output.bias[2] = -100.0  # no end: it writes as long as it may
    train(experiment, directory, quiet=True)
    return directory


def begun(run, *options):
    command = [sys.executable, "-m", "regard", "predict", str(run), *options]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which who runs tests in the background has made deaf
    return subprocess.Popen(command, preexec_fn=heard, **pipes)


def test_an_answer_begins_while_the_line_is_still_typed_and_an_interrupt_ends_it_quietly(run):
    process = begun(run, "--listen")
    process.stdin.write(b"Tom chases")
    process.stdin.flush()
    assert process.stdout.read(3).decode()  # blocks for ever if it waits for the end of the line
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"Traceback" not in told


def test_whoever_stops_reading_ends_it_quietly(run):
    process = begun(run, "--stream")
    process.stdin.write(b"Tom chases Jerry\n" * 50)
    process.stdin.flush()
    assert process.stdout.read(3)
    process.stdout.close()
    process.stdin.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert b"Traceback" not in told
