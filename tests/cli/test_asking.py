"""Questions about pictures on the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard import config as configuration
from regard.cli import app
from regard.cli.compare import _train_and_evaluate
from regard.compare.plan import plan
from regard.compare.variations import Varied
from regard.errors import DataError
from regard.tasks.vqa.predictor import Answerer
from regard.tasks.vqa.task import Config

pytestmark = pytest.mark.unhooked  # the hook knows a context of typer's from one of click's, which is what a command gets
TINY = [
    "data.samples=150",
    "data.height=32",
    "data.width=32",
    "model.hidden_size=16",
    "train.max_steps=4",
    "data.batch_pixels=8192",
]


def regard(*arguments, **more):
    return CliRunner().invoke(app, list(map(str, arguments)), **more)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run") / "vqa"
    done = regard("train", "vqa", "--out", directory, "--quiet", *(f"--{each}" for each in TINY))
    assert done.exit_code == 0, done.stderr
    return directory


@pytest.fixture
def picture(run):
    return run / "samples" / "1.png"


ASKED = "what colour is the circle?"


def test_the_first_commands_work(run, picture, tmp_path):
    trace = tmp_path / "t.attn.safetensors"
    done = regard("predict", run, picture, "--question", ASKED, "--align", "--nbest", 2, "--trace", trace)
    assert done.exit_code == 0, done.stderr
    assert "██" in done.stdout
    for attention in ("hops.1.regions", "hops.0.regions"):
        out = tmp_path / f"{attention}.png"
        done = regard("view", trace, "--figure", "overlay", "--attention", attention, "--out", out)
        assert done.exit_code == 0, done.stderr
        assert out.stat().st_size > 1000
    done = regard("view", trace, "--figure", "heatmap", "--attention", "hops.1.words", "--out", tmp_path / "words.png")
    assert done.exit_code == 0, done.stderr
    done = regard("evaluate", run, f"--data.test={run / 'samples' / 'questions.tsv'}", "--json")
    assert json.loads(done.stdout).keys() == {"loss", "accuracy"}


def test_lines_have_a_question_each_or_one_for_all(run, picture, tmp_path):
    lines = f"{picture}\t{ASKED}\n\n{picture}\tis there a red ring?\n"
    done = regard("predict", run, "--json", "--align", input=lines)
    assert done.exit_code == 0, done.stderr
    first, empty, last = map(json.loads, done.stdout.splitlines())
    assert first["input"] == f"{picture}\t{ASKED}"
    assert first["answers"][0]["grid"] == [4, 4]
    assert (empty["answers"], len(last["answers"])) == ([], 1)
    (tmp_path / "list.txt").write_text(f"{picture}\n\n{run / 'samples' / '2.png'}\n")
    out = tmp_path / "answers.txt"
    done = regard("predict", run, "--file", tmp_path / "list.txt", "--question", ASKED, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert [bool(line) for line in out.read_text().splitlines()] == [True, False, True]


def test_a_page_shows_the_picture_and_the_question(run, picture, tmp_path):
    done = regard("view", run, picture, "--question", ASKED, "--html", tmp_path / "t.html")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "t.html").stat().st_size > 100_000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["predict", "RUN", "PICTURE"], "needs a picture and a question, PATH TAB QUESTION"),
        (["predict", "RUN", "PICTURE", "--question", "xyzzy"], "input:1 has nothing in it that the model knows"),
        (["predict", "RUN", "PICTURE", "--question", "what " * 64], "has more than the 63 tokens that the model reads"),
        (["predict", "RUN", "PICTURE\twhy?", "--question", ASKED], "input 1 has a question of its own"),
        (["predict", "RUN", "gone.png", "--question", ASKED], "gone.png"),
        (["predict", "RUN", "PICTURE", "--question", ASKED, "--beam", "2"], "--beam is for models that write text"),
        (["view", "RUN", "PICTURE", "--question", "xyzzy", "--html", "OUT"], "has no token of"),
        (["evaluate", "RUN", "--data.test=TABLE", "--data.text=2"], "--data.image and --data.question and --data.answer"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(run, picture, tmp_path, arguments, text):
    names = {"RUN": run, "PICTURE": picture, "OUT": tmp_path / "x.html", "TABLE": run / "samples" / "questions.tsv"}
    for name, value in names.items():
        arguments = [each.replace(name, str(value)) for each in arguments]
    done = regard(*arguments)
    assert done.exit_code == 2, done.stdout
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_is_asked_nothing_refuses_a_question(tmp_path):
    run = tmp_path / "reverse"
    small = ["--data.samples=40", "--model.hidden_size=8", "--train.max_steps=1"]
    assert regard("train", "reverse", "--out", run, "--quiet", *small).exit_code == 0
    for arguments in (["predict", run, "a b", "--question", "why?"], ["view", run, "a b", "--question", "why?"]):
        done = regard(*arguments)
        assert done.exit_code == 2
        assert (
            "--question is for models that answer questions about pictures (vqa) or stories (answer), and this one (reverse)"
            in done.stderr
        )


def test_one_question_for_all_is_refused_where_a_line_has_its_own():
    model = Answerer.__new__(Answerer)
    assert model.complete("a.png\twhy?") == "a.png\twhy?"
    model.set_options({"question": "why?"})
    assert [model.complete(each) for each in ("a.png", "", "b.png")] == ["a.png\twhy?", "", "b.png\twhy?"]
    with pytest.raises(DataError, match=r"input 2 has a question of its own, 'b.png\\thow\?'; leave one of the two out"):
        model.complete("b.png\thow?", 2)


def test_kinds_are_compared(tmp_path):
    varied = [Varied("model.attention", ("additive", "transformer"))]
    planned = plan(lambda more: configuration.read(Config, overrides=[*TINY, *more]), varied, [], 1, Config())
    assert [each.refused for each in planned] == [None, None]
    figures = _train_and_evaluate("vqa", planned[1].config, Path(tmp_path / "run"), None)
    assert {"accuracy", "looks", "loss"} <= figures["valid"].keys()


def test_the_task_is_listed_and_shown():
    assert "vqa" in regard("list", "tasks").stdout
    shown = regard("show", "vqa").stdout
    assert "model.hops = 2" in shown
    assert "data.question = 2" in shown
