import math
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch import nn

from regard.losses.types import Loss

from .small import Part, experiment


def test_less_is_better_unless_it_is_told_otherwise():
    made = experiment()
    assert made.judged({"loss": 2.0}) == 2.0
    assert replace(made, better="bleu", upwards=True).judged({"loss": 2.0, "bleu": 30.0}) == -30.0
    assert made.judged({"loss": math.nan}) == math.inf


def test_figures_without_the_one_that_decides_are_refused():
    with pytest.raises(ValueError, match="evaluate needs to return 'loss', which decides what is better, got bleu, chrf"):
        experiment().judged({"bleu": 1.0, "chrf": 2.0})


def test_the_size_is_the_config_s():
    assert experiment(part=Part(hidden_size=16)).size == 16


def test_an_experiment_does_not_change():
    with pytest.raises(FrozenInstanceError):
        experiment().better = "bleu"


def test_a_loss_learns_where_it_is_a_module():
    made, beside = experiment(), nn.Linear(1, 1)
    assert made.learning is None
    assert replace(made, loss=beside).learning is beside


def test_a_loss_is_told_of_an_update_if_it_wants_to_know():
    seen = []

    class Watching:
        has_baseline = True

        def __call__(self, model, batch, progress):
            raise AssertionError

        def update_baseline(self, loss):
            seen.append(loss)

    loss = Loss(torch.tensor(1.0), 2)
    replace(experiment(), loss=Watching()).updated(loss)
    experiment().updated(loss)
    assert seen == [loss]
    Watching.has_baseline = False
    replace(experiment(), loss=Watching()).updated(loss)
    assert seen == [loss]
