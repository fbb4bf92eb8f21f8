import shutil
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

import regard
from regard import manifest
from regard.alignment.heads import Head
from regard.cli import app
from regard.data.table import Record
from regard.errors import DamagedError, RefusedError
from regard.interop.engine import opened as engine
from regard.interop.onnx import write as writing
from regard.interop.onnx.engine import Onnx, opened
from regard.interop.onnx.engine import exported as in_memory
from regard.interop.onnx.sessions import ENCODER
from regard.training.run_directory import STEP
from regard.viewer.trace import Trace

pytestmark = [pytest.mark.unhooked, pytest.mark.timeout(600)]

TEXTS = ["Tom chases Jerry", "the big dog in the park likes a small cat every day", "Tom", "Mary likes Tom"]


@pytest.fixture
def copy(run, tmp_path):
    """The run where something may be written to it."""
    return shutil.copytree(run, tmp_path / "run")


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"beam": 4, "best": 3},
        {"align": True},
        {"beam": 3, "align": True},
        {"beam": 2, "prefix": "汤姆", "exclude": ["追逐"]},
    ],
    ids=str,
)
def test_the_graphs_answer_as_the_model_does(run, exported, asked):
    ours, theirs = (each.predict(TEXTS, **{"best": 1, **asked}) for each in (regard.load(run, "cpu"), regard.load(exported)))
    for right, found in zip(ours, theirs, strict=True):
        assert [each.text for each in found] == [each.text for each in right]
        assert [each.links for each in found] == [each.links for each in right]
        assert [each.score for each in found] == pytest.approx([each.score for each in right], abs=1e-5)
        for one, other in zip(right, found, strict=True):
            if "align" in asked:
                torch.testing.assert_close(other.weights, one.weights, atol=1e-5, rtol=0)


def test_the_graphs_are_measured_as_the_model_is_and_know_its_chosen_head(run, exported):
    records = [Record("Tom chases Jerry", "汤姆追逐杰瑞", "1"), Record("Mary likes Tom", "玛丽喜欢汤姆", "2")]
    ours, theirs = regard.load(run, "cpu"), regard.load(exported)
    assert isinstance(theirs, Onnx)
    assert theirs.head == ours.head == Head("decoder.cross", 0)
    right, found = (each.evaluate(records) for each in (ours, theirs))
    assert found["perplexity"].value == pytest.approx(right["perplexity"].value, rel=1e-4)
    assert found["chrf"] == right["chrf"]


def test_a_model_may_be_run_by_graphs_that_nobody_writes(run, traced):
    model = regard.load(run, "cpu")
    found = in_memory(model)
    assert isinstance(found, Onnx)
    assert [each.text for each in found.predict(TEXTS)] == [each.text for each in model.predict(TEXTS)]


def test_a_run_whose_search_rounds_is_run_by_graphs_too(run, traced):
    model = regard.load(run, "cpu")
    model.config = replace(model.config, search=replace(model.config.search, precision="int8"))
    assert in_memory(model).predict(["Tom"])[0].text


def test_an_engine_makes_its_graphs_once_and_keeps_them_beside_the_model(copy, exported, monkeypatch):
    made = []

    def make(trained, precision):
        made.append(precision)
        return tuple((exported / name).read_bytes() for name in (ENCODER, STEP))

    monkeypatch.setattr(writing, "graphs", make)
    first, second = (engine(copy, engine="onnx") for _ in range(2))
    assert made == ["float32"]
    assert [each.text for each in first.predict(TEXTS)] == [each.text for each in second.predict(TEXTS)]
    assert isinstance(engine(exported, engine="onnx"), Onnx)
    assert made == ["float32"]


def test_the_command_aligns_and_traces_by_this_engine(copy, traced, tmp_path):
    out = tmp_path / "tom.attn.safetensors"
    asked = ["predict", str(copy), "Tom chases Jerry", "--beam", "3", "--align"]
    right = CliRunner().invoke(app, asked)
    done = CliRunner().invoke(app, [*asked, "--engine", "onnx", "--trace", str(out)])
    assert (right.exit_code, done.exit_code) == (0, 0), done.output
    assert done.stdout == right.stdout
    assert "traced inputs: 1. Exported graphs have the attention of the decoder" in done.stderr
    assert [look.name for look in Trace.load(out).example().attentions] == ["decoder.cross"]


def test_an_engine_on_another_device_is_refused(exported):
    with pytest.raises(RefusedError, match="the engine onnx runs on the CPU here, got --device cuda"):
        opened(exported, "cuda")


@pytest.mark.parametrize("name", ["onnx", "native"])
def test_graphs_in_another_precision_than_they_were_exported_in_are_refused(exported, name):
    with pytest.raises(
        RefusedError, match="an exported model keeps the precision of its export: leave --precision int8 out"
    ):
        engine(exported, engine=name, precision="int8")


def test_a_changed_graph_is_known(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "changed")
    data = bytearray((tmp_path / "changed" / STEP).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "changed" / STEP).write_bytes(data)
    with pytest.raises(DamagedError, match=r"step\.onnx is not what was written"):
        regard.load(tmp_path / "changed")


def test_a_missing_graph_is_named(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "missing")
    (tmp_path / "missing" / ENCODER).unlink()
    with pytest.raises(DamagedError, match=r"encoder\.onnx"):
        regard.load(tmp_path / "missing")


def test_a_directory_with_one_of_two_graphs_is_no_model(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "half")
    table = manifest.unseal(exported / manifest.NAME)
    del table["files"][ENCODER]
    sealed = {name: each for name, each in table.items() if name not in ("format", "versions")}
    (tmp_path / "half" / manifest.NAME).write_bytes(manifest.seal(sealed))
    with pytest.raises(
        DamagedError, match=r"an exported model needs encoder\.onnx, and its manifest has none; export it again"
    ):
        regard.load(tmp_path / "half")
