import json

import pytest
import torch

import regard
from regard import config as configuration
from regard import tasks
from regard.config import Data
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.split import HeldOut
from regard.errors import DataError
from regard.tasks.kinds.tables import Tables, pictures, tables, texts
from regard.training.loop import train

FILES = {"a.tsv": ["a", "d", "b", "d"], "b.tsv": ["c"], "one.tsv": ["a", "a"]}  # of these, d has a hash below a tenth


def read(data, path):
    return [Record(source, "x", f"{path}:{number}") for number, source in enumerate(FILES[path], 1)]


def found(**given):
    return tables(Data(**given), read, "source", texts)


def places(records):
    return [record.where for record in records]


def test_two_tables_are_read_as_they_stand_and_none_is_left_to_the_task():
    assert found() is None
    both = found(train="a.tsv", valid="b.tsv")
    assert (places(both.train), places(both.valid)) == (["a.tsv:1", "a.tsv:2", "a.tsv:3", "a.tsv:4"], ["b.tsv:1"])
    assert (both.held_out, both.trained) == (None, None)
    assert both.known == both.train


def test_of_one_table_a_part_is_held_out():
    one = found(train="a.tsv")
    assert (places(one.train), places(one.valid)) == (["a.tsv:1", "a.tsv:3"], ["a.tsv:2", "a.tsv:4"])
    assert one.held_out == HeldOut(2, 4, "a.tsv", "source")
    assert one.trained == [True, False, True, False]
    assert sorted(places(one.known)) == ["a.tsv:1", "a.tsv:2", "a.tsv:3", "a.tsv:4"]


def test_standard_input_is_read_once_and_called_so(monkeypatch):
    monkeypatch.setitem(FILES, "-", ["a", "d"])
    assert found(train="-").held_out == HeldOut(1, 2, "standard input", "source")


def test_what_cannot_be_parted_is_told():
    with pytest.raises(DataError, match=r"data\.valid is given and data\.train is not: name a file to train on"):
        found(valid="a.tsv")
    with pytest.raises(DataError, match=r"nothing can be held out of one\.tsv, which has one source and no other: 'a'"):
        found(train="one.tsv")


def test_records_are_prepared_on_both_sides():
    both = Tables(["a"], ["b"], None, [True, False]).prepared(str.upper)
    assert both == Tables(["A"], ["B"], None, [True, False])


def test_a_picture_is_one_however_its_path_is_spelt():
    given = [("a.png", "in/t.tsv:1"), ("./b/../a.png", "in/t.tsv:2"), ("in/a.png", "t.tsv:1"), ("a.png", "t.tsv:2")]
    assert pictures([Record(source, None, where) for source, where in given]) == ["a.png", "a.png", "a.png", "../a.png"]


WORDS = ["a", "b", "c", "d", "e", "f"]  # d is held out
CODEC = ["data.height=16", "data.width=16", "model.hidden_size=16", "model.depth=1", "data.batch_pixels=1024"]
TEXT = ["model.hidden_size=16"]
QUICK = [
    "train.evaluate_every=1",
    "train.checkpoint_every=1",
    "train.schedule=constant",
    "train.warmup_steps=0",
]


def lines(folder, task):
    """A table of six sources with two lines each, as a task reads it."""
    for number in range(6):
        (folder / f"{number}.png").write_bytes(png(torch.rand(3, 16, 16)))
        (folder / f"clip{number}").mkdir()
        (folder / f"clip{number}" / "1.png").write_bytes(png(torch.rand(3, 16, 16)))
    rows = {
        "translate": [f"{word}\tx {number}" for word in WORDS for number in (1, 2)],
        "pronounce": [f"{word}\tx {number}" for word in WORDS for number in (1, 2)],
        "inflect": [f"{word}\tx{number}" for word in WORDS for number in (1, 2)],
        "caption": [f"{n}.png\tpicture number {number}" for n in range(6) for number in (1, 2)],
        "retrieve": [f"{n}.png\tpicture number {number}" for n in range(6) for number in (1, 2)],
        "classify": [f"{n}.png\t{'zero' if n == 0 else 'dark' if n % 2 else 'light'}" for n in range(6) for _ in (1, 2)],
        "clips": [f"clip{n}\t{'zero' if n == 3 else 'dark' if n % 2 else 'light'}" for n in range(6) for _ in (1, 2)],
        "vqa": [f"{n}.png\twhat is {number}?\t{'nought' if n == 0 else n % 2}" for n in range(6) for number in (1, 2)],
        "detect": [
            json.dumps({"image": f"{n}.png", "labels": ["nought" if n == 0 else "thing"], "boxes": [[1, 1, 9, 9]]})
            for n in range(6)
            for _ in (1, 2)
        ],
    }
    path = folder / ("table.jsonl" if task == "detect" else "table.tsv")
    path.write_text("\n".join(rows[task]) + "\n", encoding="utf-8")
    return path


RUNS = {
    "translate": ("source", "d", TEXT),
    "pronounce": ("source", "d", TEXT),
    "inflect": ("source", "d", TEXT),
    "caption": ("picture", "0.png", CODEC),
    "classify": ("picture", "0.png", CODEC),
    "clips": ("clip", "clip3", [*CODEC, "data.clips=true"]),
    "detect": ("picture", "0.png", [*CODEC, "model.layers=1"]),
    "vqa": ("picture", "0.png", CODEC),
    "retrieve": ("picture", "0.png", [*CODEC, "model.projection_size=8", "model.text_layers=1"]),
}


def made(kind, folder, steps):
    """The experiment of a kind on the table in a folder, and its report."""
    task, settings = "classify" if kind == "clips" else kind, RUNS[kind][2]
    table = next(folder.glob("table.*"))
    overrides = [*settings, *QUICK, f"data.train={table}", f"train.max_steps={steps}"]
    return tasks.experiment(task, configuration.read(tasks.find(task).Config, overrides=overrides))


@pytest.mark.parametrize("kind", RUNS)
def test_every_family_holds_out_a_source_with_all_of_its_lines(kind, tmp_path):
    by, source, _ = RUNS[kind]
    table = lines(tmp_path, kind)
    experiment, report = made(kind, tmp_path, steps=1)
    assert {example.record.where.rpartition(":")[2] for example in experiment.valid} == held_lines(table, source)
    assert report.held_out == HeldOut(2, 12, str(table), by)
    train(experiment, tmp_path / "run", quiet=True)
    assert "valid =" not in (tmp_path / "run" / "config.toml").read_text(encoding="utf-8")
    first = json.loads((tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["data"]["held_out"] == {"held": 2, "lines": 12, "table": str(table), "by": by}
    assert first["data"]["read"] == 10


@pytest.mark.parametrize("kind", ["translate", "caption"])
def test_a_run_that_goes_on_holds_out_the_same_lines(kind, tmp_path):
    lines(tmp_path, kind)
    for steps in (1, 2):
        train(made(kind, tmp_path, steps)[0], tmp_path / "run", quiet=True)
    train(made(kind, tmp_path, 2)[0], tmp_path / "whole", quiet=True)
    gone_on, whole = (regard.load(tmp_path / name).model.state_dict() for name in ("run", "whole"))
    assert all(torch.equal(gone_on[name], whole[name]) for name in whole)


def held_lines(table, source):
    """The numbers of the lines on which a source stands."""
    return {str(number) for number, line in enumerate(table.read_text().splitlines(), 1) if starts(line, source)}


def starts(line, source):
    return line.startswith((f"{source}\t", f'{{"image": "{source}"'))
