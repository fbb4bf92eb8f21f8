"""One small model, trained once for each worker, that the commands are tried on."""

import subprocess
import sys

import pytest


def regard(*arguments: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user runs it."""
    command = [sys.executable, "-m", "regard", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=110, env=None, encoding="utf-8")


SMALL = [
    "--model.size=32",
    "--data.samples=300",
    "--train.max_steps=40",
    "--train.evaluate_every=20",
    "--train.log_every=20",
]


@pytest.fixture(scope="session")
def run_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("运行 😀") / "run"
    done = regard("train", "translate", *SMALL, "--out", directory)
    assert done.returncode == 0, done.stderr
    assert "all 40 steps are done; best at step" in done.stdout
    return directory
