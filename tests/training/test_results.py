import json

import pytest
import torch

from regard.training import checkpoint, results
from regard.training.directory import RunDirectory, verify
from regard.training.errors import DamagedWarning
from regard.training.loop import train
from regard.training.weights import weights

from .small import experiment
from .test_state import made


def test_the_published_model_is_the_moving_average_where_there_is_one(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
        state = made(ema=0.9, steps=3)
        results.publish(run, state)
        for name, value in results.published(run).items():
            assert torch.equal(value, state.average.values.get(name, value))
        assert not torch.equal(results.published(run)["output.bias"], weights(state.model)["output.bias"])


def test_a_lost_model_is_forgotten_with_a_warning(tmp_path):
    train(experiment(max_steps=10), tmp_path, quiet=True)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.warns(DamagedWarning, match=r"model.safetensors is missing or not what was written"):
        train(experiment(max_steps=15), tmp_path, quiet=True)
    assert "model.safetensors" in verify(tmp_path)


def test_metrics_say_what_it_took(tmp_path):
    told = train(experiment(max_steps=10), tmp_path, quiet=True)
    assert json.loads((tmp_path / "metrics.json").read_text()) == told
    assert told["updates"] == 10
    assert told["parameters"] == sum(each.numel() for each in experiment().model.parameters())
    assert told["tokens"] > 0
    assert set(told["valid"]) == {"loss"}


def test_a_model_newer_than_the_checkpoint_is_not_described_by_the_figures_of_an_older_one(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
        state = made(steps=2)
        state.counters.best, state.counters.step = 1.0, 2
        results.publish(run, state)
        checkpoint.save(run.checkpoints, 2, state.tensors(), state.table())
        again = made(steps=0)
        results.resume(run, again)
        assert again.counters.best == 1.0
        newer = made(steps=3)
        results.publish(run, newer)  # and then the run is killed, before its next checkpoint
        again = made(steps=0)
        results.resume(run, again)
        assert again.counters.best is None
