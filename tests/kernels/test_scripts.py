"""The scripts of `make gpu` on machines that lack something: packages, Triton, torch or a GPU."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is for Linux")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TIMED = ["additive", "dot", "flash", "recurrent", "transformer", "decode", "simplex", "norm"]


def required(*names):
    """The installed packages of these names, and of what they require."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop().lower()
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another system
            continue
        needs = (each for each in found[name].requires or [] if "extra ==" not in each)
        waiting += {re.match(r"[\w.-]+", each)[0] for each in needs} - set(found)
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Runs Python where `packages` and what they require are all that is installed: links to these in a folder."""
    folders = {}

    def run(*command, packages=("torch", "triton")):
        if packages not in folders:
            folder = folders[packages] = tmp_path_factory.mktemp("packages")
            for package in required(*packages).values() if packages else ():
                for top in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
                    if not (folder / top).exists():
                        (folder / top).symlink_to(package.locate_file(top))
        kept = {name: value for name, value in os.environ.items() if name not in ("TRITON_INTERPRET", "PYTHONPATH")}
        environment = {**kept, "PYTHONPATH": str(folders[packages]), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, "-S", *command], env=environment, cwd=BENCHMARKS, capture_output=True, text=True
        )

    return run


def test_these_are_the_scripts_that_are_timed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    assert list(gpu.TIMES) == TIMED


@pytest.mark.parametrize("script", ["gpu", "parity", *TIMED, "complexity"])
def test_a_script_needs_torch_and_triton_alone(bare, script):
    done = bare("-c", f"import {script}, importlib.util; print(importlib.util.find_spec('numpy'))")
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
