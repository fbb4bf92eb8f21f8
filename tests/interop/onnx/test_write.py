import json
from zipfile import ZipFile

import onnx
import onnxruntime
import pytest
import torch
from typer.testing import CliRunner

import regard
from regard import manifest, tasks
from regard.cli import app
from regard.config import Train
from regard.errors import RefusedError
from regard.inference.ensemble.build import ensemble
from regard.interop import require
from regard.interop.engine import opened as engine
from regard.interop.onnx import write as writing
from regard.interop.onnx.sessions import ENCODER
from regard.interop.onnx.write import files, graphs
from regard.tasks.classify import task
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.training.loop import train
from regard.training.run_directory import MODEL, STEP

pytestmark = [pytest.mark.unhooked, pytest.mark.timeout(600)]


def test_a_directory_holds_two_graphs_with_their_weights_inside_and_all_that_text_needs(home, exported):
    assert (home / "said").read_text().startswith(f"{exported}: graphs of ONNX in float32, ")
    names = {each.name for each in exported.iterdir()}
    assert {ENCODER, STEP, "config.toml", "codec.json", manifest.NAME} <= names
    assert MODEL not in names
    for name in (ENCODER, STEP):
        graph = onnx.load(exported / name, load_external_data=False)
        onnx.checker.check_model(graph, full_check=True)
        assert not any(each.data_location == onnx.TensorProto.EXTERNAL for each in graph.graph.initializer)
    inputs = [each.name for each in graph.graph.input]
    assert inputs[:4] == ["token", "keep", "memory.decoder.cross.keys", "memory.decoder.cross.values"]
    outputs = [each.name for each in graph.graph.output]
    assert outputs[0] == "log_probabilities"
    assert outputs[-1] == "weights.decoder.cross"


def test_files_in_int8_are_the_quantised_graphs(run, traced):
    found = files(regard.load(run, "cpu"), "int8")
    assert len(found[STEP]) < len(traced[STEP])
    assert json.loads(found[manifest.NAME])["files"][STEP] == manifest.digest(found[STEP])


@pytest.mark.parametrize("name", ["graphs", "model.zip"])
def test_the_command_writes_a_directory_or_one_file_that_other_commands_open(run, traced, tmp_path, name):
    out = tmp_path / name
    done = CliRunner().invoke(app, ["export", str(run), "--to", "onnx", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert f"{out}: graphs of ONNX in float32" in done.output
    assert [each.name for each in tmp_path.iterdir()] == [name]
    asked = [CliRunner().invoke(app, ["predict", str(each), "Tom chases Jerry", "--align"]) for each in (run, out)]
    assert [each.exit_code for each in asked] == [0, 0]
    assert asked[0].output == asked[1].output
    told = CliRunner().invoke(app, ["predict", str(out), "Tom", "--out", str(tmp_path / "answers.txt")])
    assert told.exit_code == 0, told.output
    assert (tmp_path / "answers.txt").read_text().strip()
    seen = CliRunner().invoke(app, ["view", str(out), "Tom chases Jerry", "--html", str(tmp_path / "page.html")])
    assert seen.exit_code == 0, seen.output
    assert "decoder.cross" in (tmp_path / "page.html").read_text()


def test_a_graph_taken_out_of_one_file_runs_without_regard(run, traced, tmp_path):
    out = tmp_path / "model.zip"
    writing.write(run, out)
    with ZipFile(out) as archive:
        session = onnxruntime.InferenceSession(archive.read(STEP), providers=["CPUExecutionProvider"])
    assert session.get_outputs()[0].name == "log_probabilities"
    refused = CliRunner().invoke(app, ["export", str(run), "--to", "onnx", "--out", str(out)])
    assert refused.exit_code == 2
    assert "is there already and is not empty: choose another name" in " ".join(refused.output.split())


def test_nobody_trains_into_an_exported_model(run, exported):
    config = regard.load(run, "cpu").config
    with pytest.raises(RefusedError, match="is an exported model: train into another directory"):
        train(tasks.experiment("translate", config)[0], exported, quiet=True)


def test_a_precision_that_is_none_is_refused(run):
    with pytest.raises(RefusedError, match="onnx has the precisions float32, int8, got 'int4'; name one of them"):
        files(regard.load(run, "cpu"), "int4")


def test_weights_that_are_not_finite_are_refused(run):
    trained = regard.load(run)
    with torch.no_grad():
        next(trained.model.parameters())[0] = float("nan")
    with pytest.raises(RefusedError, match="onnx takes weights that are finite numbers"):
        graphs(trained)


def test_a_model_too_large_for_one_graph_is_refused(run, monkeypatch):
    monkeypatch.setattr(writing, "MOST", 1000)
    with pytest.raises(
        RefusedError, match=r"a file of ONNX holds up to 2 GiB, and the weights of this model take [\d,]+ bytes"
    ):
        graphs(regard.load(run, "cpu"))


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_a_machine_without_a_library_is_told_how_to_get_it(run, monkeypatch, missing):
    find = require.find_spec
    monkeypatch.setattr(require, "find_spec", lambda name: None if name == missing else find(name))
    with pytest.raises(RefusedError, match=rf"this needs {missing}, which is not installed: pip install 'regard\[onnx\]'"):
        graphs(regard.load(run, "cpu"))


def test_what_is_no_single_network_is_refused(run, exported):
    both = ensemble([regard.load(run, "cpu"), regard.load(run, "cpu")])
    for model in (both, regard.load(exported)):
        with pytest.raises(
            RefusedError, match="onnx takes one network of PyTorch, and this is an ensemble or an export: take"
        ):
            graphs(model)


def test_a_run_that_sees_pictures_and_writes_nothing_is_refused_by_name(tmp_path):
    config = task.Config(
        data=ClassifyData(height=16, width=16, samples=40),
        model=ClassifyModel(hidden_size=8, depth=1),
        train=Train(max_steps=1),
    )
    train(tasks.experiment("classify", config)[0], tmp_path / "run", quiet=True)
    for ask in (lambda: writing.write(tmp_path / "run", tmp_path / "out"), lambda: engine(tmp_path / "run", engine="onnx")):
        with pytest.raises(
            RefusedError, match=r"is a run of classify, and onnx takes models that write: .*caption's; `regard"
        ):
            ask()
    assert not (tmp_path / "out").exists()
