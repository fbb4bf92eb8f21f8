import math
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch import nn

from regard.errors import ConfigError
from regard.losses.types import Loss

from .small import Part, experiment


def test_lower_is_better_unless_the_experiment_says_otherwise():
    made = experiment()
    assert made.monitored_value({"loss": 2.0}) == 2.0
    assert replace(made, monitor="bleu", higher_is_better=True).monitored_value({"loss": 2.0, "bleu": 30.0}) == -30.0
    assert made.monitored_value({"loss": math.nan}) == math.inf


def test_an_evaluation_without_the_monitored_metric_is_refused():
    with pytest.raises(ValueError, match="evaluate needs to return 'loss', the monitored metric, got bleu, chrf"):
        experiment().monitored_value({"bleu": 1.0, "chrf": 2.0})


def test_the_size_is_the_config_s():
    assert experiment(part=Part(hidden_size=16)).hidden_size == 16


def test_epochs_become_steps_rounded_up():
    assert experiment(max_epochs=3.0).settings.max_steps == 18  # of 6 batches
    assert experiment(max_epochs=3.0, accumulate_steps=4).settings.max_steps == 5
    assert experiment(max_epochs=0.01).settings.max_steps == 1
    assert experiment(max_steps=7).settings.max_steps == 7


def test_epochs_need_a_data_set_that_has_some():
    class Endless:
        def batch(self, step):
            raise AssertionError

    with pytest.raises(
        ConfigError, match=r"train.max_epochs needs training data that is counted in epochs; use train.max_s"
    ):
        _ = replace(experiment(max_epochs=1.0), train=Endless()).settings


def test_an_experiment_does_not_change():
    with pytest.raises(FrozenInstanceError):
        experiment().monitor = "bleu"


def test_a_loss_learns_where_it_is_a_module():
    made, beside = experiment(), nn.Linear(1, 1)
    assert made.loss_module is None
    assert replace(made, loss=beside).loss_module is beside


def test_a_loss_with_a_baseline_is_updated_with_each_loss():
    seen = []

    class Watching:
        has_baseline = True

        def __call__(self, model, batch, progress):
            raise AssertionError

        def update_baseline(self, loss):
            seen.append(loss)

    loss = Loss(torch.tensor(1.0), 2)
    replace(experiment(), loss=Watching()).update_baseline(loss)
    experiment().update_baseline(loss)
    assert seen == [loss]
    Watching.has_baseline = False
    replace(experiment(), loss=Watching()).update_baseline(loss)
    assert seen == [loss]
