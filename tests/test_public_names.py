"""The names that editors complete and type checkers know: those that are imported on first use too."""

import pydoc
import subprocess
import sys
from importlib import import_module

import pytest

import regard
import regard.attention
from regard import registry

PROGRAM = """
import regard
import torch
from regard import Trace, find
from regard.attention import Additive, Attention, Causal, LocationSensitive, MultiHead, ScaledDot, Sinusoidal, Sparsemax, attend
from regard.attention.normalise import Entmax
from regard.attention.scope import Local
from regard.attention.score import Rotary

data = torch.randn(2, 3, 8)
heads = MultiHead(8, heads=2, score=Rotary())
attended = heads(data, heads.remember(data))
reveal_type(attend(data[:, None], data[:, None], data[:, None], score=ScaledDot(), normalise=Sparsemax(), scope=Causal()))
reveal_type(attended)
reveal_type(attended.context)
reveal_type(heads.remember(data))
reveal_type(Attention(8, score=Additive(8, 8)))
reveal_type(Causal() & Local(4))
reveal_type(Entmax(1.5))
reveal_type(LocationSensitive(8))
reveal_type(Sinusoidal(8))
reveal_type(ScaledDot().scale)
reveal_type(find("additive"))
reveal_type(regard.attention.MultiHead.from_torch(torch.nn.MultiheadAttention(8, 2)))
reveal_type(regard.view(Trace.from_arrays(torch.ones(2, 2) / 2)))
reveal_type(Trace.load("file"))
reveal_type(Trace.load("file").figure("heads"))
reveal_type(Trace.load("file").strength())
with regard.record(heads) as recorder:
    heads(data, heads.remember(data))
reveal_type(recorder.trace())
reveal_type(regard.load("run").trace(["text"]))
reveal_type(regard.load("run").predict(["text"])[0])
reveal_type(regard.load("run").predict(["text"])[0].weights)
"""

PREDICTORS = """
import regard

reveal_type(regard.load("run"))
reveal_type(regard.load("run").predict)
reveal_type(regard.load("run").stream)
reveal_type(regard.load("run").evaluate([]))
reveal_type(regard.ensemble(["run"]))
reveal_type(regard.train)
reveal_type(regard.train("reverse", out="run", train={"max_steps": 3}))
reveal_type(regard.train(out="run").load())
reveal_type(regard.record)
"""

TYPES = [
    "",
    "regard.attention.types.Attended",
    "regard.attention.types.Attended",
    "torch._tensor.Tensor",
    "regard.attention.types.Memory",
    "regard.attention.module.Attention",
    "regard.attention.scope.Scope",
    "regard.attention.normalise.entmax.Entmax",
    "regard.attention.mechanisms.location_sensitive.LocationSensitive",
    "regard.attention.positions.sinusoidal.Sinusoidal",
    "float | None",
    "type[Any]",
    "regard.attention.multihead.MultiHead",
    "regard.viewer.html.view.View",
    "regard.viewer.trace.Trace",
    "matplotlib.figure.Figure",
    "numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]]",
    "regard.viewer.trace.Trace",
    "regard.viewer.trace.Trace",
    "regard.inference.prediction.Prediction",
    "torch._tensor.Tensor | None",
    "",
][1:-1]

UNKNOWN = (
    "import regard\nimport regard.attention\nfrom regard.attention.score import ScaledDott\n"
    "regard.attention.Sparcemax\nregard.recordd\n"
)


@pytest.mark.parametrize("kind", registry.FINDABLE)
def test_a_folder_lists_every_class_of_its_files(kind):
    package = import_module(f"regard.attention.{kind}")
    names = {registry.class_name(stem) for stem in registry.names(kind)}
    text = f"regard/attention/{kind}/__init__.py: import a new class under TYPE_CHECKING and name it in __all__"
    assert names <= set(package.__all__), text
    assert names <= set(dir(package))
    assert all(hasattr(package, name) for name in package.__all__)


def test_attention_lists_every_public_name():
    names = {registry.class_name(stem) for kind in registry.FINDABLE for stem in registry.names(kind)}
    assert names <= set(regard.attention.__all__) <= set(dir(regard.attention))
    assert {"attend", "Attention", "MultiHead", "Memory", "Scope"} <= set(dir(regard.attention))
    assert len(set(regard.attention.__all__)) == len(regard.attention.__all__)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What mypy says of two programs of users, by file."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("programs")
    (folder / "known.py").write_text(PROGRAM)
    (folder / "predictors.py").write_text(PREDICTORS)
    (folder / "unknown.py").write_text(UNKNOWN)
    files = ["known.py", "predictors.py", "unknown.py"]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *files]
    lines = subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout.splitlines()
    return {name: [line for line in lines if line.startswith(name)] for name in files}


def test_a_type_checker_sees_the_types_of_a_users_file(report):
    revealed = [line.partition('Revealed type is "')[2].removesuffix('"') for line in report["known.py"]]
    names = [name.rpartition("fallback=")[2].removesuffix("]") if "fallback=" in name else name for name in revealed]
    assert [name.replace("builtins.", "") for name in names] == TYPES, report["known.py"]


def test_a_type_checker_sees_the_types_of_models_that_are_opened(report):
    revealed = [line.partition('Revealed type is "')[2].removesuffix('"') for line in report["predictors.py"]]
    assert len(revealed) == PREDICTORS.count("reveal_type")
    assert all(name and name != "Any" and "-> Any" not in name for name in revealed), report["predictors.py"]


def test_to_a_type_checker_an_unknown_name_is_an_error(report):
    assert any('has no attribute "ScaledDott"' in line for line in report["unknown.py"])
    assert any("Sparcemax" in line and "error" in line for line in report["unknown.py"])
    assert any(line.startswith("unknown.py:5: error") for line in report["unknown.py"])


def test_regard_lists_every_public_name_without_importing_torch():
    program = "import sys, regard; print(*dir(regard)); assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert set(regard.__all__) <= set(listed)
    assert {"attention", "ensemble", "find", "load", "record", "view", "Prediction", "Trace"} <= set(listed)
    public = [name for name in listed if not name.startswith("_")]
    assert all(hasattr(regard, name) for name in public)
    assert not {"Any", "TYPE_CHECKING", "import_module"} & set(public)


def test_help_shows_every_public_name():
    page = pydoc.render_doc(regard, renderer=pydoc.plaintext)
    assert 'regard.load("runs/demo")' in page
    for line in ("class Prediction(", "class Trace(", " load(", " record(", " view(", " find(", " ensemble(", " train("):
        assert line in page


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'recordd'"):
        regard.recordd  # noqa: B018
