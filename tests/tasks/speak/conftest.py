import pytest

from regard import tasks
from regard.config import AttentionPart, Train
from regard.tasks.speak.config import SpeakData, SpeakDropout, SpeakModel
from regard.tasks.speak.task import Config
from regard.training.loop import train

DATA = {"samples": 6, "bins": 12, "rate": 8000, "batch_seconds": 8.0}
MODEL = {"hidden_size": 8, "prenet_size": 6, "postnet_size": 6, "postnet_layers": 2, "layers": 1, "reduction": 5, "heads": 2}
QUICK = {"max_steps": 4, "evaluate_every": 4, "checkpoint_every": 4, "guided_attention": 1.0, "device": "cpu"}


def build_config(data=(), model=(), dropout=(), attention="forward", **settings):
    return Config(
        data=SpeakData(**DATA | dict(data)),
        model=SpeakModel(attention=AttentionPart(attention), **MODEL | {"feedforward_size": 12} | dict(model)),
        dropout=SpeakDropout(**dict(dropout)),
        train=Train(**QUICK | settings),
    )


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("speak") / "run"
    experiment, _ = tasks.experiment("speak", build_config())
    train(experiment, directory, quiet=True)
    return directory, experiment


@pytest.fixture
def predictor(run):
    from regard.inference.load import load

    return load(run[0], "cpu")
