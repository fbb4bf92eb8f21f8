"""One small recurrent model and one that reads pictures, each trained for a moment and exported once for all tests and all
workers: exporting takes long."""

import shutil

import pytest

from regard import manifest, tasks
from regard.alignment.heads import Head
from regard.config import AttentionPart, Data, ImageTextData, ImageToTextModel, Model, Search, Train
from regard.inference.alignment_head import save_head
from regard.interop.onnx import write as writing
from regard.interop.onnx.quantise import quantised
from regard.interop.onnx.sessions import ENCODER
from regard.tasks.caption import task
from regard.tasks.translate import Config
from regard.training.loop import train
from regard.training.run_directory import STEP


@pytest.fixture(scope="session")
def home(once):
    """Where the run and its exports lie."""
    return once("onnx", _make)


def _make(folder):
    folder.mkdir()
    config = Config(
        data=Data(batch_tokens=512, samples=200),
        model=Model(hidden_size=32, embedding_size=16),
        train=Train(max_steps=40, evaluate_every=40, learning_rate=1e-2, label_smoothing=0.0),
    )
    train(tasks.experiment("translate", config)[0], folder / "run", quiet=True)
    save_head(folder / "run", Head("decoder.cross", 0))
    (folder / "said").write_text(_export(folder))


def _export(folder):
    """Export a run, and once more in int8, without tracing it again."""
    said = writing.write(folder / "run", folder / "exported")
    shutil.copytree(folder / "exported", folder / "small")
    for name in (ENCODER, STEP):
        (folder / "small" / name).write_bytes(quantised((folder / "exported" / name).read_bytes()))
    table = manifest.unseal(folder / "small" / manifest.NAME)
    digests = {name: manifest.digest((folder / "small" / name).read_bytes()) for name in table["files"]}
    (folder / "small" / manifest.NAME).write_bytes(manifest.seal({"files": digests, "pending": {}}))
    return said


@pytest.fixture(scope="session")
def captions(once):
    """Where a run that reads pictures lies, with its exports."""
    return once("onnx-captions", _see)


def _see(folder):
    folder.mkdir()
    config = task.Config(
        data=ImageTextData(height=32, width=48, samples=120, batch_pixels=1 << 14),
        model=ImageToTextModel(
            hidden_size=16, depth=1, decoder="transformer", layers=1, heads=2, attention=AttentionPart("transformer")
        ),
        train=Train(max_steps=40, evaluate_every=40, learning_rate=1e-2),
        search=Search(max_length=12),
    )
    train(tasks.experiment("caption", config)[0], folder / "run", quiet=True)
    _export(folder)


@pytest.fixture
def run(home):
    return home / "run"


@pytest.fixture
def exported(home):
    return home / "exported"


@pytest.fixture
def small(home):
    """The same in int8."""
    return home / "small"


@pytest.fixture
def traced(exported, monkeypatch):
    """Tracing finds what it found before."""
    given = {name: (exported / name).read_bytes() for name in (ENCODER, STEP)}
    monkeypatch.setattr(writing.tracing, "encoder", lambda *_: given[ENCODER])
    monkeypatch.setattr(writing.tracing, "step", lambda *_: given[STEP])
    return given
