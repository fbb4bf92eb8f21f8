"""Small models: their weights mean nothing, and every number of them can be told from the model itself."""

from dataclasses import replace

import pytest

from regard import tasks
from regard.config import AttentionPart, Data, Model, Train
from regard.data.table import Record
from regard.inference.sequence_predictor import SequencePredictor
from regard.tasks.translate import Config
from regard.training.loop import train

PAIRS = [
    Record("the dog sleeps", "der hund schläft", "pairs:1"),
    Record("the cat sees the dog", "die katze sieht den hund", "pairs:2"),
    Record("a cat", "eine katze", "pairs:3"),
]


def write(folder, records=PAIRS):
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{each.source}\t{each.target}\n" for each in records), encoding="utf-8")
    return str(path)


def config(folder, attention="transformer", **data):
    path = write(folder)
    model = Model(
        hidden_size=16,
        layers=2,
        encoder="transformer",
        decoder="transformer",
        heads=2,
        attention=AttentionPart(attention, 2),
    )
    settings = Train(max_steps=1, evaluate_every=1, device="cpu")
    return Config(data=Data(train=path, valid=path, **data), model=model, train=settings)


def made(folder, attention="transformer", **data):
    """A model that has learnt nothing."""
    chosen = config(folder, attention, **data)
    experiment, _ = tasks.experiment("translate", chosen)
    return SequencePredictor(tasks.bind("translate"), chosen, experiment.codec, experiment.model)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return made(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(tasks.experiment("translate", config(folder))[0], folder / "run", quiet=True)
    return folder / "run"


def flipped_config(folder):
    """The same the other way round."""
    chosen = config(folder)
    return replace(chosen, data=replace(chosen.data, source="2", target="1"))
