"""Predicts of a directory into which a training publishes all the while: each answers by one model alone, or is refused.

Two models of one config are published in turn, as a training does it. Predicts are forks of this process, so that they open
the directory at any instant of that.
"""

import itertools
import os
import random
import signal
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save
from typer.testing import CliRunner

from regard import tasks
from regard.cli import app
from regard.config import Data, Model, Search, Train
from regard.tasks.translate import Config
from regard.training.loop import train
from regard.training.run_directory import MODEL, RunDirectory

pytestmark = pytest.mark.unhooked
LINES = ["Tom chases Jerry", "Mary likes Tom", "the big dog", "a small cat likes the dog", "Jerry"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A small run, whose weights are then made large: what they answer tells them apart."""
    folder = tmp_path_factory.mktemp("published")
    config = Config(
        data=Data(samples=80),
        model=Model(hidden_size=8),
        train=Train(max_steps=1, evaluate_every=1),
        search=Search(max_length=6),
    )
    train(tasks.experiment("translate", config)[0], folder / "run", quiet=True)
    (folder / "in.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    tensors = load_file(folder / "run" / MODEL)
    for name, seed in (("one", 1), ("two", 2)):
        chance = torch.Generator().manual_seed(seed)
        weights = {key: tensor + torch.randn(tensor.shape, generator=chance) for key, tensor in tensors.items()}
        (folder / name).write_bytes(save(weights))
    return folder


def publish(folder: Path) -> None:
    """Publish one model after the other, until killed or left behind by who asked for it."""
    run, parent = RunDirectory(folder / "run"), os.getppid()
    for name in itertools.takewhile(lambda _: os.getppid() == parent, itertools.cycle(("one", "two"))):
        run.publish({MODEL: (folder / name).read_bytes()})
        time.sleep(random.uniform(0, 0.03))


def fork(work, *given: object) -> int:
    """A process that does this, and nothing of what pytest would do at its end."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.fsync = lambda handle: None
        code = work(*given) or 0
    finally:
        os._exit(code)


def predict(folder: Path, out: Path) -> int:
    """The command, whose words go into a file."""
    arguments = [
        "predict",
        str(folder / "run"),
        "--file",
        str(folder / "in.txt"),
        "--out",
        str(out),
        "--json",
        "--device",
        "cpu",
    ]
    done = CliRunner().invoke(app, arguments)
    out.with_suffix(".said").write_text(f"{done.output}{done.stderr}", encoding="utf-8")
    return done.exit_code


def answers(folder: Path, name: str) -> bytes:
    """What one model answers when nobody publishes anything."""
    RunDirectory(folder / "run").publish({MODEL: (folder / name).read_bytes()})
    out = folder / f"{name}.txt"
    assert predict(folder, out) == 0, out.with_suffix(".said").read_text(encoding="utf-8")  # and imports what forks need
    return out.read_bytes()


def under_publish(folder: Path, count: int, kill: bool) -> dict[str, int]:
    """So many predicts; with `kill` each is killed at a random instant, and asked again until it ends."""
    right = {answers(folder, name): name for name in ("one", "two")}
    assert len(right) == 2
    ended = dict.fromkeys(("one", "two", "refused", "killed"), 0)
    publisher = fork(publish, folder)
    try:
        for number in range(count):
            out = folder / f"out-{number}.txt"
            while not out.exists():
                child = fork(predict, folder, out)
                if kill and random.random() < 0.6:
                    time.sleep(random.uniform(0.005, 0.08))
                    os.kill(child, signal.SIGKILL)
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                if code == -signal.SIGKILL:
                    ended["killed"] += 1
                elif code == 2:
                    ended["refused"] += 1
                    assert "manifest" in out.with_suffix(".said").read_text(encoding="utf-8")
                    break
                else:
                    assert code == 0, out.with_suffix(".said").read_text(encoding="utf-8")
            else:
                ended[right[out.read_bytes()]] += 1  # a mixture of both is neither
    finally:
        os.kill(publisher, signal.SIGKILL)
        os.waitpid(publisher, 0)
    return ended


def test_a_predict_while_a_training_publishes_answers_by_one_model(directory):
    ended = under_publish(directory, 20, kill=False)
    assert min(ended["one"], ended["two"]) > 0, ended


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kill", [False, True])
def test_two_hundred_predicts_while_a_training_publishes_answer_by_one_model(directory, kill):
    ended = under_publish(directory, 200, kill)
    assert min(ended["one"], ended["two"]) > 0, ended
