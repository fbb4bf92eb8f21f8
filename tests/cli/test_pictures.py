"""Pictures on the command line: train, predict, evaluate, align, export, compare."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard import config as configuration
from regard.cli import app
from regard.cli.compare import _train_and_evaluate
from regard.compare.plan import plan
from regard.compare.variations import Varied
from regard.tasks.caption.task import Config

pytestmark = pytest.mark.unhooked  # the hook knows a context of typer's from one of click's, which is what a command gets
TINY = ["data.samples=60", "data.height=32", "data.width=32", "model.hidden_size=16", "train.max_steps=4", "model.layers=1"]
TINY += ["search.max_length=12"]


def regard(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run") / "caption"
    done = regard("train", "caption", "--out", directory, "--quiet", *(f"--{each}" for each in TINY))
    assert done.exit_code == 0, done.stderr
    return directory


def test_the_first_commands_work(run, tmp_path):
    done = regard("predict", run, run / "samples" / "1.png", "--align", "--trace", tmp_path / "t.attn.safetensors")
    assert done.exit_code == 0, done.stderr
    assert "██" in done.stdout
    done = regard("view", tmp_path / "t.attn.safetensors", "--figure", "overlay", "--out", tmp_path / "t.png")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "t.png").stat().st_size > 1000


def test_a_file_of_paths_is_answered_line_by_line(run, tmp_path):
    paths = [str(run / "samples" / f"{number}.png") for number in (2, 1)]
    (tmp_path / "list.txt").write_text("".join(f"{path}\n" for path in paths))
    done = regard("predict", run, "--file", tmp_path / "list.txt", "--json", "--align", "--beam", "2", "--nbest", "2")
    assert done.exit_code == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["input"] for line in lines] == paths
    assert lines[0]["answers"][0]["grid"] == [4, 4]
    assert len(lines[0]["answers"]) == 2


def test_a_damaged_picture_in_a_file_costs_no_other_its_answer(run, tmp_path):
    whole, cut, none = run / "samples" / "1.png", tmp_path / "cut.png", tmp_path / "none.png"
    cut.write_bytes(whole.read_bytes()[:-20])
    none.write_text("no picture")
    (tmp_path / "list.txt").write_text("".join(f"{path}\n" for path in (whole, cut, whole, none, whole)))
    out, trace = tmp_path / "captions.txt", tmp_path / "t.attn.safetensors"
    done = regard("predict", run, "--file", tmp_path / "list.txt", "--out", out, "--trace", trace, "--json")
    assert done.exit_code == 2
    assert [len(json.loads(line)["answers"]) for line in out.read_text().splitlines()] == [1, 0, 1, 0, 1]
    assert f"list.txt:2: {cut} is a PNG picture that cannot be decoded" in done.stderr
    assert f"list.txt:4: {none} is no PNG, JPEG or WebP picture" in done.stderr
    assert "list.txt:2 has no answer (2 such in all): 2 have a file that cannot be read; such" in done.stderr
    assert "\n5 lines in " in done.stderr
    assert f"{trace}: traced inputs: 3. Recording took" in done.stderr
    assert " \n" not in done.stderr


def test_a_run_is_measured_on_a_table_by_the_columns_that_are_named(run):
    table = run / "samples" / "captions.tsv"
    done = regard("evaluate", run, f"--data.test={table}", "--data.image=1", "--data.text=2", "--json")
    assert done.exit_code == 0, done.stderr
    assert {"bleu", "chrf", "exact", "perplexity"} == set(json.loads(done.stdout))
    done = regard("evaluate", run, f"--data.test={table}", "--data.source=1")
    assert done.exit_code == 2
    assert "evaluate has no setting data.source; it takes --data.test=FILE, and --data.image and --data.text" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["predict", "RUN", "gone.png"], "there is no file gone.png"),
        (["export", "RUN", "--to", "ctranslate2", "--out", "OUT"], "an export to ctranslate2 is for models that read text"),
        (["export", "RUN", "--to", "huggingface", "--out", "OUT"], "it has model.encoder=resnet, and vit is needed"),
        (["predict", "RUN", "--listen"], "to answer while the source still arrives is for models that read text"),
        (["predict", "RUN", "RUN/samples/1.png", "--unknown", "copy"], "is for models that read text"),
        (["align", "RUN", "--data.test=RUN/samples/captions.tsv"], "regard align is for models that read text"),
    ],
)
def test_what_is_not_for_pictures_is_said_in_a_sentence(run, tmp_path, arguments, text):
    done = regard(*(each.replace("RUN", str(run)).replace("OUT", str(tmp_path / "out")) for each in arguments))
    assert done.exit_code == 2, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_kinds_are_compared(tmp_path):
    settings = [*TINY, "model.decoder=recurrent"]
    varied = [Varied("model.attention", ("additive", "grid_coverage"))]
    planned = plan(lambda more: configuration.read(Config, overrides=[*settings, *more]), varied, [], 1, Config())
    assert [each.refused for each in planned] == [None, None]
    figures = _train_and_evaluate("caption", planned[1].config, Path(tmp_path / "run"), None)
    assert {"exact", "looks", "loss"} <= figures["valid"].keys()


def test_the_task_is_listed_and_shown():
    assert "caption" in regard("list", "tasks").stdout
    shown = regard("show", "caption").stdout
    assert "model.visual_attention = none" in shown
    assert "data.augment = none" in shown
