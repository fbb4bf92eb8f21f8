import hashlib
import json
import math
import os
import shutil
from dataclasses import replace

import pytest
import torch

from regard import manifest
from regard.errors import DamagedWarning
from regard.training import publish
from regard.training.loop import train
from regard.training.run_directory import RunDirectory, verify
from regard.training.state_dict import weights

from .small import experiment
from .test_state import made


def test_the_published_model_is_the_moving_average_where_there_is_one(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
        state = made(ema=0.9, steps=3)
        publish.publish(run, state, 2.5, {"loss": 2.5})
        for name, value in publish.load_published_weights(run).items():
            assert torch.equal(value, state.average.values.get(name, value))
        assert not torch.equal(publish.load_published_weights(run)["output.bias"], weights(state.model)["output.bias"])


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


def scored(values, **settings):
    """An experiment whose evaluations have these values, by step."""
    usual = experiment(**{"max_steps": 20, "evaluate_every": 2, "checkpoint_every": 4, "keep_checkpoints": 9, **settings})
    steps = [0]

    def loss(model, batch, progress):
        steps[0] = progress.step + 1
        return usual.loss(model, batch, progress)

    return replace(usual, loss=loss, evaluate=lambda model: {"loss": values[steps[0]], "step": float(steps[0])})


VALUES = {2: 3.5, 4: 3.2, 6: 2.78, 8: 3.18, 10: 3.0, 12: 2.9, 14: 2.5, 16: 2.6, 18: 2.7, 20: 2.8}


def cut_back(directory, step):
    """The directory as a kill leaves it before the checkpoints after `step`."""
    for path in (directory / "checkpoints").iterdir():
        if int(path.name) > step:
            shutil.rmtree(path)


def model(directory):
    return hashlib.sha256((directory / "model.safetensors").read_bytes()).hexdigest()


def test_the_published_model_stands_in_the_manifest_with_its_step_value_and_metrics(tmp_path):
    told = train(scored(VALUES), tmp_path, quiet=True)
    record = manifest.unseal(tmp_path / "manifest.json")["published"]
    assert record == {"sha256": model(tmp_path), "step": 14, "value": 2.5, "metrics": {"loss": 2.5, "step": 14.0}}
    assert (told["step"], told["valid"]) == (14, {"loss": 2.5, "step": 14.0})


@pytest.mark.parametrize("ema", [None, 0.9])
def test_a_kill_before_the_next_checkpoint_never_makes_the_published_model_worse(tmp_path, ema):
    """Killed after step 10, whose model is published, with the checkpoint of step 4: the evaluation of step 6 is worse."""
    values = {**VALUES, 6: 3.18, 8: 3.0, 10: 2.78}
    whole = train(scored(values, ema_decay=ema), tmp_path / "whole", quiet=True)
    train(scored(values, ema_decay=ema, max_steps=10), tmp_path / "cut", quiet=True)
    best = model(tmp_path / "cut")
    cut_back(tmp_path / "cut", 4)
    told = train(scored(values, ema_decay=ema, max_steps=6), tmp_path / "cut", quiet=True)
    assert (told["step"], told["valid"]["loss"], model(tmp_path / "cut")) == (10, 2.78, best)
    told = train(scored(values, ema_decay=ema), tmp_path / "cut", quiet=True)
    assert model(tmp_path / "cut") == model(tmp_path / "whole")
    timeless = {name: value for name, value in told.items() if name != "seconds"}
    assert timeless == {name: whole[name] for name in timeless}


def test_early_stopping_after_a_kill_counts_as_if_there_had_been_none(tmp_path):
    """The replay meets the value of the published model again, which is not less than itself, and is no stale evaluation."""
    whole = train(scored(VALUES, patience=3), tmp_path / "whole", quiet=True)
    assert (whole["updates"], whole["step"], whole["ended"]) == (12, 6, "3 evaluations brought nothing better")
    train(scored(VALUES, patience=3, max_steps=6), tmp_path / "cut", quiet=True)
    cut_back(tmp_path / "cut", 4)
    told = train(scored(VALUES, patience=3), tmp_path / "cut", quiet=True)
    assert (told["updates"], told["step"], told["valid"]) == (12, 6, {"loss": 2.78, "step": 6.0})


def test_a_model_without_checkpoints_is_only_replaced_by_a_better_one(tmp_path):
    train(scored(VALUES, max_steps=6), tmp_path, quiet=True)
    before = model(tmp_path)
    shutil.rmtree(tmp_path / "checkpoints")
    train(scored(VALUES, max_steps=4), tmp_path, quiet=True)
    assert model(tmp_path) == before


def test_after_a_damaged_model_the_figures_are_those_of_the_one_that_took_its_place(tmp_path):
    train(scored(VALUES, max_steps=8), tmp_path, quiet=True)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.warns(DamagedWarning, match=r"model.safetensors is missing or not what was written"):
        told = train(scored(VALUES, max_steps=10), tmp_path, quiet=True)
    assert (told["step"], told["valid"]) == (10, {"loss": 3.0, "step": 10.0})


def test_a_finished_training_whose_model_is_lost_evaluates_what_it_publishes(tmp_path):
    first = train(experiment(max_steps=10), tmp_path, quiet=True)
    (tmp_path / "model.safetensors").unlink()
    again = experiment(max_steps=10)
    with pytest.warns(DamagedWarning, match="model.safetensors is missing"):
        told = train(again, tmp_path, quiet=True)
    assert told["step"] == 10
    assert told["valid"] == again.evaluate(again.model.eval())
    assert first["valid"] == told["valid"]


def test_a_diverged_training_publishes_its_last_weights_with_their_own_figures(tmp_path):
    values = dict.fromkeys(VALUES, math.nan)
    told = train(scored(values), tmp_path, quiet=True)
    assert (told["step"], told["valid"]) == (20, {"loss": None, "step": 20.0})
    record = manifest.unseal(tmp_path / "manifest.json")["published"]
    assert record == {"sha256": model(tmp_path), "step": 20, "value": None, "metrics": {"loss": None, "step": 20.0}}


def test_the_average_of_checkpoints_is_published_with_its_own_figures_even_after_a_kill(tmp_path):
    settings = {"average_checkpoints": 3, "max_steps": 20}
    whole = train(experiment(**settings), tmp_path / "run", quiet=True)
    before = manifest.unseal(tmp_path / "run" / "manifest.json")["published"]
    (tmp_path / "run" / "metrics.json").unlink()  # as if killed between the model and its report
    told = train(experiment(**settings), tmp_path / "run", quiet=True)
    assert manifest.unseal(tmp_path / "run" / "manifest.json")["published"] == before
    assert (told["step"], told["valid"]) == (whole["step"], whole["valid"]) == (20, before["metrics"])


def test_a_kill_inside_a_publication_leaves_model_and_figures_of_one_moment(tmp_path, monkeypatch):
    """Before each of the three writes of a publication, and after the last, the record is that of the model that lies there."""
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
        publish.publish(run, made(steps=2), 3.0, {"loss": 3.0})
        models, replace_ = {model(tmp_path): 3.0}, os.replace
        seen = []

        def watched(source, target):
            replace_(source, target)
            with pytest.MonkeyPatch.context() as unwatched:
                unwatched.setattr(os, "replace", replace_)
                seen.append((model(tmp_path), publish.published_record(RunDirectory(tmp_path), {})))

        monkeypatch.setattr(os, "replace", watched)
        publish.publish(run, made(steps=3), 2.0, {"loss": 2.0})
        models[model(tmp_path)] = 2.0
    assert [record.value for _, record in seen] == [3.0, 2.0, 2.0]
    assert all(record.sha256 == digest and record.value == models[digest] for digest, record in seen)


def test_a_publication_cut_short_that_was_the_last_is_settled_on_disk(tmp_path, monkeypatch):
    """Killed after the model and before the manifest that says so."""
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
        seal = run._seal

        def cut(table):
            if not table["pending"]:
                raise KeyboardInterrupt
            seal(table)

        monkeypatch.setattr(run, "_seal", cut)
        with pytest.raises(KeyboardInterrupt):
            publish.publish(run, made(steps=2), 3.0, {"loss": 3.0})
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
    table = manifest.unseal(tmp_path / "manifest.json")
    assert (table["pending"], table["published"]["sha256"]) == ({}, model(tmp_path))
    assert "publishing" not in table


def test_a_run_of_an_earlier_version_has_the_record_in_its_checkpoint(tmp_path):
    train(scored(VALUES, max_steps=8), tmp_path, quiet=True)
    table = manifest.unseal(tmp_path / "manifest.json")
    record = table.pop("published")
    (tmp_path / "manifest.json").write_bytes(manifest.seal(without_head(table)))
    path = tmp_path / "checkpoints" / "8" / "manifest.json"
    saved = without_head(manifest.unseal(path))
    earlier = {"published": record["sha256"], "best_step": 6, "best_figures": record["metrics"]}
    path.write_bytes(manifest.seal({**saved, "counters": {**saved["counters"], **earlier}}))
    told = train(scored(VALUES, max_steps=12), tmp_path, quiet=True)
    assert (told["step"], told["valid"]["loss"]) == (6, 2.78)


def without_head(table):
    return {name: value for name, value in table.items() if name not in ("format", "versions")}


@pytest.mark.parametrize("record", [None, {"sha256": "0"}, "x", {"sha256": 1, "step": "a", "value": [], "metrics": 3}])
def test_a_model_without_figures_gives_way_with_a_warning(tmp_path, record):
    train(scored(VALUES, max_steps=8), tmp_path, quiet=True)
    table = without_head(manifest.unseal(tmp_path / "manifest.json"))
    (tmp_path / "manifest.json").write_bytes(manifest.seal({**table, "published": record}))
    with pytest.warns(DamagedWarning, match=r"model.safetensors has no figures of its own in the manifest; the best model"):
        told = train(scored(VALUES, max_steps=10), tmp_path, quiet=True)
    assert (told["step"], told["valid"]["loss"]) == (10, 3.0)
