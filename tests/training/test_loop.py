import json
import os
import signal
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from regard.training import update
from regard.training.checkpoint import steps
from regard.training.directory import verify
from regard.training.errors import FailedError, Interrupted
from regard.training.loop import train
from regard.training.losses import teach
from regard.training.weights import weights

from .small import Network, Plain, experiment, fingerprint


def log(directory):
    return [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]


def test_training_learns_and_leaves_a_whole_directory(tmp_path):
    told = train(experiment(max_steps=60, evaluate_every=20, checkpoint_every=20), tmp_path, quiet=True)
    valid = [line["valid"]["loss"] for line in log(tmp_path) if "valid" in line]
    assert len(valid) == 3
    assert valid[-1] < 0.7 * valid[0]
    assert told["valid"]["loss"] == min(valid)
    assert sorted(verify(tmp_path)) == ["config.toml", "model.safetensors", "vocabulary.json"]
    assert steps(tmp_path / "checkpoints") == [40, 60]


def test_the_log_has_the_figures_of_each_stretch(tmp_path):
    train(experiment(max_steps=10, log_every=5), tmp_path, quiet=True)
    lines = [line for line in log(tmp_path) if "loss" in line]
    assert [line["step"] for line in lines] == [5, 10]
    assert {"step", "loss", "nll", "rate", "tokens_per_second", "gradient", "skipped"} <= set(lines[0])


def test_the_model_in_memory_is_the_one_in_the_directory(tmp_path):
    made = experiment(max_steps=20, rate=1.0)  # far too fast: the best is not the last
    told = train(made, tmp_path, quiet=True)
    assert told["step"] < 20
    saved = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(value, saved[name]) for name, value in weights(made.model).items())
    assert made.evaluate(made.model.eval())["loss"] == pytest.approx(told["valid"]["loss"])


@pytest.mark.parametrize(
    "settings", [{}, {"ema": 0.9, "schedule": "plateau"}, {"average": 2, "accumulate": 2}, {"optimiser": "sgd"}]
)
def test_stopping_anywhere_and_going_on_changes_no_bit(tmp_path, settings):
    train(experiment(max_steps=20, **settings), tmp_path / "whole", quiet=True)
    for last in (3, 10, 13, 20):
        train(experiment(max_steps=last, **settings), tmp_path / "cut", quiet=True)
    whole, cut = fingerprint(tmp_path / "whole"), fingerprint(tmp_path / "cut")
    assert whole["20"] == cut["20"]


def test_that_comparison_bites(tmp_path, monkeypatch):
    monkeypatch.setattr(update, "reseed", lambda *arguments: None)
    torch.manual_seed(1)
    train(experiment(max_steps=10), tmp_path / "whole", quiet=True)
    for last in (5, 10):
        torch.manual_seed(1)
        train(experiment(max_steps=last), tmp_path / "cut", quiet=True)
    assert fingerprint(tmp_path / "whole") != fingerprint(tmp_path / "cut")


def test_other_seeds_give_other_models(tmp_path):
    model = Network().state_dict()
    prints = []
    for seed in (0, 0, 1):
        network = Network()
        network.load_state_dict(model)
        train(experiment(network, seed=seed, max_steps=5), tmp_path / str(len(prints)), quiet=True)
        prints.append(fingerprint(tmp_path / str(len(prints))))
    assert prints[0] == prints[1] != prints[2]


def test_patience_ends_a_training_that_gets_no_better(tmp_path):
    made = replace(experiment(max_steps=100, patience=2), evaluate=lambda model: {"loss": 1.0})
    told = train(made, tmp_path, quiet=True)
    assert told["updates"] == 15
    assert told["step"] == 5
    assert told["ended"] == "2 evaluations brought nothing better"


def test_minutes_end_a_training_and_more_minutes_let_it_go_on(tmp_path):
    told = train(experiment(max_minutes=0.0), tmp_path, quiet=True)
    assert (told["updates"], told["ended"]) == (0, "the 0 minutes are over")
    assert train(experiment(max_minutes=1.0), tmp_path, quiet=True)["updates"] == 20


def test_a_model_without_attention_trains_as_well(tmp_path):
    made = experiment(Plain(), max_steps=10)
    train(made, tmp_path, quiet=True)
    assert not any("attention" in line for line in log(tmp_path))


def test_attention_health_is_in_the_log_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.training.health.SHARE", 1e9)
    train(experiment(max_steps=5), tmp_path, quiet=True)
    (line,) = (line for line in log(tmp_path) if "loss" in line)
    assert set(line["attention"]["attention"]) == {"entropy", "coverage", "diagonality", "dead", "heads", "gradient"}


def test_whoever_stops_it_is_told_what_is_kept_and_how_to_go_on(tmp_path, capsys):
    def asked(model, batch, progress):
        if progress.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return teach(model, batch)

    with pytest.raises(Interrupted):
        train(replace(experiment(max_steps=5), loss=asked), tmp_path)
    assert "stopped at step 3, which is kept; the same command goes on from there" in capsys.readouterr().err
    assert steps(tmp_path / "checkpoints") == [3]


def test_news_goes_to_standard_error(tmp_path, capsys):
    train(experiment(max_steps=5), tmp_path)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "step 5 · loss" in shown.err
    assert "step 5 · valid loss" in shown.err
    assert "finished: all 5 steps are done" in shown.err


def test_determinism_is_on_where_it_is_asked_for(tmp_path):
    seen = []

    def watched(model, batch, progress):
        seen.append(torch.are_deterministic_algorithms_enabled())
        return teach(model, batch)

    train(replace(experiment(max_steps=2, deterministic=True), loss=watched), tmp_path, quiet=True)
    assert seen == [True, True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_evaluation_that_does_not_fit_into_memory_ends_with_advice(tmp_path):
    def evaluate(model):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    with pytest.raises(FailedError, match=r"out of memory at step 5 \(CUDA out of memory"):
        train(replace(experiment(), evaluate=evaluate), tmp_path, quiet=True)


def test_errors_of_the_task_stay_what_they_are(tmp_path):
    def broken(model, batch, progress):
        raise RuntimeError("a mistake in the task")

    with pytest.raises(RuntimeError, match="a mistake in the task"):
        train(replace(experiment(), loss=broken), tmp_path, quiet=True)
