"""A few runs that were hardly trained: what counts is that they differ."""

import dataclasses

import pytest

from regard import tasks
from regard.config import Data, Model, Search, Train
from regard.tasks.translate import Config
from regard.training.loop import train

BASE = Config(
    data=Data(batch_tokens=512, samples=60),
    model=Model(hidden_size=8),
    train=Train(max_steps=2),
    search=Search(max_length=6),
)


def trained(directory, **parts):
    """A run directory: the base with other settings in some of its parts."""
    settings = {name: dataclasses.replace(getattr(BASE, name), **each) for name, each in parts.items()}
    train(tasks.experiment("translate", dataclasses.replace(BASE, **settings))[0], directory, quiet=True)
    return directory


def _make(root):
    transformer = {"encoder": "transformer", "decoder": "transformer", "heads": 2}
    trained(root / "first")
    trained(root / "second", train={"seed": 1, "max_steps": 4})
    trained(root / "transformer", model=transformer)
    trained(root / "letters", data={"tokenizer": "characters"})


@pytest.fixture(scope="session")
def runs(once):
    """Two seeds, a Transformer, and one that spells its words otherwise."""
    return {path.name: path for path in once("members", _make).iterdir()}
