"""The names that editors complete and type checkers know: those that are imported on first use too."""

import subprocess
import sys
from importlib import import_module

import pytest

import regard.attention
from regard import registry

PROGRAM = """
import torch
from regard import find
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
    "",
][1:-1]

UNKNOWN = "import regard.attention\nfrom regard.attention.score import ScaledDott\nregard.attention.Sparcemax\n"


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
    (folder / "unknown.py").write_text(UNKNOWN)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "known.py", "unknown.py"]
    lines = subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout.splitlines()
    return {name: [line for line in lines if line.startswith(f"{name}.py")] for name in ("known", "unknown")}


def test_a_type_checker_sees_the_types_of_a_users_file(report):
    revealed = [line.partition('Revealed type is "')[2].removesuffix('"') for line in report["known"]]
    names = [name.rpartition("fallback=")[2].removesuffix("]") if "fallback=" in name else name for name in revealed]
    assert [name.replace("builtins.", "") for name in names] == TYPES, report["known"]


def test_to_a_type_checker_an_unknown_name_is_an_error(report):
    assert any('has no attribute "ScaledDott"' in line for line in report["unknown"])
    assert any("Sparcemax" in line and "error" in line for line in report["unknown"])
