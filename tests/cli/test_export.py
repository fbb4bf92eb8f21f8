import shutil
from pathlib import Path

from regard.cli.export import default_output

from .conftest import regard


def test_a_model_that_a_format_cannot_express_is_refused_in_one_paragraph(run_directory, tmp_path):
    done = regard("export", run_directory, "--to", "ctranslate2", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "regard: ctranslate2 cannot express this model: it has a recurrent encoder, and a transformer"
    )
    assert not (tmp_path / "out").exists()


def test_a_format_is_needed(run_directory):
    done = regard("export", run_directory, "--to", "paper", "--out", "out")
    assert (done.returncode, done.stderr) == (
        2,
        "regard: --to needs to be one of onnx, ctranslate2, huggingface, got 'paper'\n",
    )


def test_without_a_place_an_export_lies_beside_its_model(run_directory, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run_directory, copy)
    done = regard("export", f"{copy}/", "--to", "onnx", "--precision", "int8")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "run-onnx-int8") in done.stdout
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run", "run-onnx-int8"]
    again = regard("export", copy, "--to", "onnx", "--precision", "int8")
    assert again.returncode == 2
    assert "run-onnx-int8" in again.stderr


def test_the_place_beside_a_model_is_named_after_the_format():
    assert default_output(Path("runs/one/"), "onnx", "float32") == Path("runs/one-onnx").resolve()
    assert default_output(Path("."), "ctranslate2", "int8").name == f"{Path.cwd().name}-ctranslate2-int8"


def test_a_trace_through_an_engine_that_gives_none_is_refused_before_anything_is_answered(run_directory, tmp_path):
    done = regard("predict", run_directory, "Tom", "--engine", "ctranslate2", "--trace", tmp_path / "a.attn.safetensors")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("regard: a trace needs the weights of every attention, and the engine ctranslate2 gives")
