"""An index on the command line: made, searched, and refused."""

import json

import pytest
import torch
from typer.testing import CliRunner

from regard.cli import app
from regard.cli.index import _kind
from regard.data.image.writing import png
from regard.data.records import Record
from regard.tasks.retrieve.index import Index

pytestmark = pytest.mark.unhooked  # the hook knows a context of typer's from one of click's, which is what a command gets
TINY = [
    "data.samples=60",
    "data.height=32",
    "data.width=32",
    "model.hidden_size=16",
    "model.projection_size=8",
    "model.text_layers=1",
]
TINY += ["train.max_steps=2"]


def regard(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run") / "retrieve"
    done = regard("train", "retrieve", "--out", directory, "--quiet", *(f"--{each}" for each in TINY))
    assert done.exit_code == 0, done.stderr
    return directory


@pytest.fixture
def texts(run):
    return [line.split("\t")[1] for line in (run / "samples" / "texts.tsv").read_text().splitlines()]


def refused(*arguments):
    done = regard(*arguments)
    assert done.exit_code == 2, done.output
    return done.stderr


def test_a_table_becomes_an_index_of_pictures_and_a_text_finds_some(run, texts, tmp_path):
    out = tmp_path / "pictures.safetensors"
    done = regard("index", run, "--file", run / "samples" / "texts.tsv", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"{out}: 6 pictures (")
    done = regard("predict", run, texts[0], "--index", out, "--nbest", 3, "--json")
    answers = json.loads(done.stdout)["answers"]
    assert len(answers) == 3
    assert all(each["text"].endswith(".png") for each in answers)


def test_a_column_becomes_an_index_of_texts_and_a_picture_finds_some(run, texts, tmp_path):
    out = tmp_path / "texts.safetensors"
    (tmp_path / "t.tsv").write_text("".join(f"x\t{text}\n" for text in [*texts, texts[0]]))
    done = regard("index", run, "--file", tmp_path / "t.tsv", "--column", 2, "--out", out)
    assert done.stdout.startswith(f"{out}: 6 texts, 1 more were there already (")
    done = regard("predict", run, run / "samples" / "1.png", "--index", out, "--align")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0] in texts
    assert "██" in done.stdout


def test_a_file_of_questions_is_answered_into_a_file(run, texts, tmp_path):
    (tmp_path / "asked.txt").write_text("".join(f"{text}\n" for text in texts))
    done = regard("predict", run, "--file", tmp_path / "asked.txt", "--out", tmp_path / "found.txt")
    assert done.exit_code == 0, done.stderr
    assert len((tmp_path / "found.txt").read_text().splitlines()) == 6


def test_what_the_model_knows_nothing_of_is_left_empty_and_said(run):
    said = refused("predict", run, "zebra crossing")
    assert "input:1 has nothing in it that the model knows; its answer was left empty" in said


def test_what_cannot_be_read_is_listed_with_its_lines_and_nothing_is_written(run, tmp_path):
    (tmp_path / "a.png").write_bytes(png(torch.rand(3, 8, 8)))
    (tmp_path / "b.png").write_text("no picture")
    (tmp_path / "c.png").write_bytes(png(torch.rand(3, 8, 8))[:40])
    (tmp_path / "list.txt").write_text("a.png\nb.png\nc.png\n")
    said = refused("index", run, "--file", tmp_path / "list.txt", "--out", tmp_path / "i.safetensors")
    assert "of 3 pictures cannot be read: " in said
    assert "list.txt:2: " in said
    assert "b.png is no PNG, JPEG or WebP picture" in said
    (tmp_path / "list.txt").write_text("a.png\ngone.png\n")
    said = refused("index", run, "--file", tmp_path / "list.txt", "--out", tmp_path / "i.safetensors")
    assert "1 of 2 pictures are missing: " in said
    assert "list.txt:2 gone.png" in said
    (tmp_path / "list.txt").write_text("a red star\nzebra\n")
    said = refused("index", run, "--file", tmp_path / "list.txt", "--out", tmp_path / "i.safetensors")
    assert "1 of 2 texts cannot be read: " in said
    assert "list.txt:2 has nothing that the model knows" in said
    assert not (tmp_path / "i.safetensors").exists()


def test_a_picture_that_breaks_off_leaves_nothing_half_written(run, tmp_path):
    whole = png(torch.rand(3, 30, 30))
    (tmp_path / "c.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "list.txt").write_text("c.png\n")
    said = refused("index", run, "--file", tmp_path / "list.txt", "--out", tmp_path / "i.safetensors")
    assert "c.png is a PNG picture that cannot be decoded" in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["c.png", "list.txt"]


def test_an_index_of_another_model_is_refused(run, tmp_path):
    Index(torch.ones(1, 8), ["x"], "texts", "another").save(tmp_path / "i.safetensors")
    said = refused("predict", run, run / "samples" / "1.png", "--index", tmp_path / "i.safetensors")
    assert "i.safetensors was made by another model" in said
    said = refused("predict", run, "a star", "--index", tmp_path / "no.safetensors")
    assert f"there is no file {tmp_path / 'no.safetensors'}; " in said
    assert "an index is made by regard index RUN --file LIST --out NAME.safetensors" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--out", "i.txt"), "an index is a file called NAME.safetensors, got 'i.txt'"),
        (("--out", "no/i.safetensors"), "there is no directory no; make it first"),
        (("--out", "i.safetensors", "--of", "words"), "--of needs to be pictures, texts or auto, got 'words'"),
        (("--out", "i.safetensors", "--column", "9"), "has 2 columns, and the source is column 9"),
    ],
)
def test_what_makes_no_index_is_said_first(run, arguments, text):
    assert text in refused("index", run, "--file", run / "samples" / "texts.tsv", *arguments)


def test_an_index_is_for_models_that_retrieve(tmp_path):
    tiny = ["--data.samples=40", "--model.hidden_size=8", "--train.max_steps=1"]
    assert regard("train", "reverse", "--out", tmp_path / "r", "--quiet", *tiny).exit_code == 0
    (tmp_path / "list.txt").write_text("a\n")
    made = ("index", tmp_path / "r", "--file", tmp_path / "list.txt", "--out", tmp_path / "i.safetensors")
    assert "an index is for models of retrieve, and " in refused(*made)
    searched = ("predict", tmp_path / "r", "a b", "--index", tmp_path / "i.safetensors")
    assert "--index is for models of retrieve, and this one (reverse) takes none; leave it out" in refused(*searched)


def test_a_text_that_is_too_long_for_a_name_is_no_picture():
    assert _kind([Record("a red heart " * 40, None, "t.tsv:1")], "auto") == "texts"
