import math
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch import nn

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
