import json

import numpy as np
import pytest
import soundfile

from regard import tasks
from regard.errors import ConfigError, DataError, DataWarning
from regard.losses.types import Progress
from regard.tasks._validate import buildable
from regard.tasks.speak.experiment import Evaluation
from regard.training.run_directory import verify

from .conftest import build_config

unhooked = pytest.mark.unhooked  # a training calls so often that looking at every shape takes longer than the rest


@unhooked
def test_a_run_is_whole_and_has_figures_of_its_attention(run):
    directory, experiment = run
    verify(directory)
    metrics = json.loads((directory / "metrics.json").read_text())
    assert {"loss", "l1", "diagonality", "misread"} <= metrics["valid"].keys()
    texts = (directory / "samples" / "texts.txt").read_text().splitlines()
    assert texts == [example.record.source for example in experiment.valid[: len(texts)]]


def test_a_table_of_recordings_trains(tmp_path):
    chance = np.random.default_rng(0)
    for number in range(5):
        soundfile.write(tmp_path / f"{number}.wav", 0.1 * chance.standard_normal(2400 + 400 * number), 8000)
    (tmp_path / "t.tsv").write_text("".join(f"{number}.wav\ttext {number}\n" for number in range(5)))
    data = {"train": str(tmp_path / "t.tsv"), "valid": str(tmp_path / "t.tsv")}
    experiment, report = tasks.experiment("speak", build_config(data))
    assert report.encoded == 5
    batch = experiment.train.batch(0)
    loss = experiment.loss(experiment.model, batch, Progress(0, 1))
    assert loss.total.isfinite()
    assert batch.target.keep.sum() == loss.tokens


def test_recordings_that_are_missing_are_listed(tmp_path):
    (tmp_path / "t.tsv").write_text("a.wav\tone\nb.wav\ttwo\n")
    data = {"train": str(tmp_path / "t.tsv"), "valid": str(tmp_path / "t.tsv")}
    with pytest.raises(DataError, match=r"4 of 4 recordings are missing: .*t.tsv:1 a.wav"):
        tasks.experiment("speak", build_config(data))


def test_a_metric_that_is_not_measured_cannot_be_monitored():
    with pytest.raises(ConfigError, match=r"train.monitor needs to be one of loss, l1, diagonality, misread, got 'bleu'"):
        tasks.experiment("speak", build_config(monitor="bleu"))


def test_a_config_is_validated_before_data_is_read():
    with pytest.raises(ConfigError, match=r"model.reduction needs to be 1 or more"):
        buildable(build_config(model={"reduction": 0}))
    buildable(build_config(model={"network": "transformer"}, attention="transformer"))


@unhooked
def test_a_training_whose_attention_does_not_learn_to_read_warns_once(run, monkeypatch):
    _, experiment = run
    evaluation = Evaluation("speak", experiment.config, experiment.codec, experiment.valid[:2])
    forced = {"loss": 1.0, "l1": 1.0, "diagonality": 0.3}
    monkeypatch.setattr(Evaluation, "measure_forced", lambda *_: dict(forced))
    monkeypatch.setattr(Evaluation, "measure_free", lambda *_: 0.0)
    evaluation(experiment.model)
    evaluation(experiment.model)
    with pytest.warns(DataWarning, match="does not read the text from its beginning to its end: diagonality 0.30"):
        evaluation(experiment.model)
    assert evaluation(experiment.model)["misread"] == 0.0  # a second warning would be an error
