"""One small model, trained once for all workers, that the commands are tried on."""

import subprocess

import pytest

from .ready import Ready

ready = Ready()


def regard(*arguments: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user runs it, which has everything imported."""
    return ready.run(list(map(str, arguments)), given)


@pytest.fixture(autouse=True, scope="session")
def _closed():
    yield
    ready.close()


SMALL = [
    "--model.hidden_size=32",
    "--data.samples=300",
    "--train.max_steps=40",
    "--train.evaluate_every=20",
    "--train.log_every=20",
]


@pytest.fixture(scope="session")
def run_directory(once):
    def trained(folder):
        done = regard("train", "translate", *SMALL, "--out", folder / "run")
        assert done.returncode == 0, done.stderr
        assert "all 40 steps are done; best at step" in done.stdout

    return once("运行 😀", trained) / "run"
