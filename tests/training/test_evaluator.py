import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from regard.training.loop import train
from regard.training.state_dict import weights

from .small import experiment


def test_upwards_the_greatest_is_best(tmp_path):
    scores = iter([1.0, 3.0, 2.0, 0.0])
    made = replace(experiment(), monitor="bleu", higher_is_better=True, evaluate=lambda model: {"bleu": next(scores)})
    assert train(made, tmp_path, quiet=True)["valid"] == {"bleu": 3.0}


def test_figures_that_are_not_numbers_never_win(tmp_path):
    made = replace(experiment(schedule="plateau"), evaluate=lambda model: {"loss": math.nan})
    train(made, tmp_path, quiet=True)
    saved = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(value, saved[name]) for name, value in weights(made.model).items())


def test_the_average_of_the_last_checkpoints_is_published(tmp_path):
    made = experiment(max_steps=20, average_checkpoints=3)
    told = train(made, tmp_path, quiet=True)
    states = [load_file(tmp_path / "checkpoints" / str(step) / "state.safetensors") for step in (10, 15, 20)]
    wanted = torch.stack([state["model.output.bias"].double() for state in states]).mean(0).float()
    assert torch.equal(load_file(tmp_path / "model.safetensors")["output.bias"], wanted)
    assert told["valid"]["loss"] == pytest.approx(made.evaluate(made.model.eval())["loss"])


def test_evaluation_sees_the_moving_average_in_evaluation_mode_without_gradients(tmp_path):
    seen = []

    def evaluate(model):
        seen.append((model.training, torch.is_grad_enabled(), model.output.bias.detach().clone()))
        return {"loss": 1.0}

    train(replace(experiment(max_steps=5, ema_decay=0.99), evaluate=evaluate), tmp_path, quiet=True)
    state = load_file(tmp_path / "checkpoints" / "5" / "state.safetensors")
    assert [each[:2] for each in seen] == [(False, False)]
    assert torch.equal(seen[0][2], state["ema.output.bias"])
    assert not torch.equal(seen[0][2], state["model.output.bias"])
