"""The scripts of examples/pictures as modules: they are no package, and find each other by their folder."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "examples" / "pictures"


@pytest.fixture
def script(monkeypatch):
    """A script by its name, gone from the interpreter after the test."""
    monkeypatch.syspath_prepend(SCRIPTS)
    names = [path.stem for path in SCRIPTS.glob("*.py")]
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def rows():
    """The cells of a TSV."""
    return lambda path: [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]
