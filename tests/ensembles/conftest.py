"""A few runs that were hardly trained: what counts is that they differ."""

import dataclasses

import pytest

from regard import tasks
from regard.config import Data, Model, Search, Train
from regard.tasks.translate import Config
from regard.training.loop import train

BASE = Config(
    data=Data(batch_tokens=512, samples=60), model=Model(size=8), train=Train(max_steps=2), search=Search(length=6)
)


def trained(directory, **parts):
    """A run directory: the base with other settings in some of its parts."""
    settings = {name: dataclasses.replace(getattr(BASE, name), **each) for name, each in parts.items()}
    train(tasks.experiment("translate", dataclasses.replace(BASE, **settings))[0], directory, quiet=True)
    return directory


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Two seeds, a Transformer, and one that spells its words otherwise."""
    root = tmp_path_factory.mktemp("runs")
    transformer = {"encoder": "transformer", "decoder": "transformer", "heads": 2}
    return {
        "first": trained(root / "first"),
        "second": trained(root / "second", train={"seed": 1, "max_steps": 4}),
        "transformer": trained(root / "transformer", model=transformer),
        "letters": trained(root / "letters", data={"tokens": "characters"}),
    }
