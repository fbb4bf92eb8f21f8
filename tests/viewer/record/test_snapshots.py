import dataclasses
import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from regard import tasks
from regard.config import AttentionPart, Data, Model, Train
from regard.errors import ConfigError, DamagedWarning, RefusedError
from regard.tasks._validate import heeded
from regard.tasks.translate import Config, prepare
from regard.training.loop import train
from regard.viewer.io import load
from regard.viewer.record.snapshots import FILM, encoded, film
from regard.viewer.trace import Trace

from ...training.small import experiment as other_experiment

PROBE = "Tom chases Jerry\t汤姆追逐杰瑞"


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def experiment(film=PROBE, **settings):
    usual = {
        "max_steps": 12,
        "evaluate_every": 6,
        "checkpoint_every": 4,
        "record_example": film,
        "record_every": 3,
        "device": "cpu",
    }
    part = AttentionPart(name="transformer", heads=2)
    model = Model(hidden_size=8, heads=2, layers=1, encoder="transformer", decoder="transformer", attention=part)
    config = Config(data=Data(batch_tokens=256, samples=60), model=model, train=Train(**usual | settings))
    return tasks.experiment("translate", config)[0]


def run(directory, **settings):
    made = experiment(**settings)
    train(made, directory, quiet=True)
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run from beginning to end, with its film."""
    directory = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        return directory, run(directory)


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """A run that stopped after four steps."""
    directory = tmp_path_factory.mktemp("four")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        run(directory, max_steps=4)
    return directory


@pytest.fixture
def begun(four, tmp_path):
    """The same, to go on with."""
    return Path(shutil.copytree(four, tmp_path / "begun"))


def frames(directory):
    return [(frame.step, frame.loss) for frame in load(directory / FILM).training]


def test_a_film_has_a_frame_every_so_many_steps_of_a_target_that_stays_the_same(whole):
    directory, made = whole
    film = load(directory / FILM)
    assert [frame.step for frame in film.training] == [0, 3, 6, 9, 12]
    assert film.training[0].loss is None  # before the first update
    assert all(frame.loss > 0 for frame in film.training[1:])
    [example] = film.examples
    assert example.title == "Tom chases Jerry"
    assert example.axes["source"].labels == ["Tom", "chases", "Jerry", "<eos>"]
    assert example.axes["written"].labels == ["<bos>", *example.axes["target"].labels[:-1]]
    names = {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}
    assert all(set(frame.weights) == names for frame in film.training)
    assert {node.id for node in film.graph.nodes if node.kind == "attention"} == names
    assert next(node for node in film.graph.nodes if node.id == "decoder.0.cross").inputs["query"][:2] == (
        1,
        len(example.axes["target"]),
    )
    assert film.notes == ("A film of 5 frames, 3 steps apart.",)
    assert not any(module._forward_hooks for module in made.model.modules())


def test_a_film_changes_no_weight(whole, tmp_path):
    without = run(tmp_path, record_example=None)
    assert not (tmp_path / FILM).exists()
    for name, weight in whole[1].model.state_dict().items():
        assert torch.equal(weight, without.model.state_dict()[name]), name


def test_a_run_that_goes_on_goes_on_with_its_film_and_writes_no_frame_twice(whole, tmp_path):
    run(tmp_path, max_steps=7)
    assert [step for step, _ in frames(tmp_path)] == [0, 3, 6, 7]
    run(tmp_path)
    at_once, parts = (load(directory / FILM) for directory in (whole[0], tmp_path))
    assert [frame.step for frame in parts.training] == [0, 3, 6, 9, 12]
    for one, other in zip(at_once.training, parts.training, strict=True):
        assert one.loss == other.loss
        for name, weights in one.weights.items():
            np.testing.assert_array_equal(weights, other.weights[name])
    before = (tmp_path / FILM).read_bytes()
    run(tmp_path)  # there is nothing left to do
    assert (tmp_path / FILM).read_bytes() == before


def test_frames_that_a_kill_made_too_early_are_taken_again(whole, begun):
    assert [step for step, _ in frames(begun)] == [0, 3, 4]
    (begun / FILM).write_bytes((whole[0] / FILM).read_bytes())  # as if it were ahead of the newest checkpoint
    run(begun, max_steps=6)
    assert [step for step, _ in frames(begun)] == [0, 3, 6]


def test_the_target_comes_from_the_data_where_none_is_given():
    made = experiment(record_example=None)
    record = made.valid[0].record
    assert encoded(made, record.source, prepare).record.target == record.target
    record = made.train.examples[0].record
    assert encoded(made, record.source, prepare).record.target == record.target
    assert encoded(made, f"{record.source}\t猫", prepare).record.target == "猫"


def test_a_source_that_nobody_knows_needs_its_target(tmp_path):
    with pytest.raises(ConfigError, match="'a zebra', which is not in the data, so its target is not known; give both"):
        run(tmp_path, record_example="a zebra")


@pytest.mark.parametrize("film", ["", "  \tx", "Tom\t"])
def test_a_film_needs_a_sentence(tmp_path, film):
    with pytest.raises(ConfigError, match=r"train.record_example needs a sentence, or two with a tab between them"):
        run(tmp_path, record_example=film)


def test_a_task_without_text_has_no_film(tmp_path):
    with pytest.raises(ConfigError, match=r"train.record_example needs a task that reads text"):
        train(
            replace(other_experiment(record_example="x"), callbacks=(partial(film, prepare=prepare),)), tmp_path, quiet=True
        )


def test_the_film_of_another_sentence_is_left_alone(begun):
    before = (begun / FILM).read_bytes()
    with pytest.raises(RefusedError, match=r"is the film of 'Tom chases Jerry', and train.record_example is now 'Jerry'"):
        run(begun, record_example="Jerry\t杰瑞")
    assert (begun / FILM).read_bytes() == before


def test_a_film_that_cannot_be_read_begins_anew_with_a_warning(begun):
    (begun / FILM).write_bytes(b"no film")
    with pytest.warns(DamagedWarning, match="the film begins anew"):
        run(begun, max_steps=7)
    assert [step for step, _ in frames(begun)] == [6, 7]


def test_a_film_of_a_model_that_looks_nowhere_would_show_nothing():
    usual = Config()
    model = dataclasses.replace(usual.model, attention=AttentionPart(name="none"))
    changed = dataclasses.replace(usual, model=model, train=dataclasses.replace(usual.train, record_example="x"))
    with pytest.raises(ConfigError, match=r"train.record_example=x would change nothing: it needs an attention"):
        heeded([changed], usual)
    often = dataclasses.replace(usual, train=dataclasses.replace(usual.train, record_every=7))
    with pytest.raises(ConfigError, match=r"train.record_every=7 would change nothing: it needs a recorded example"):
        heeded([often], usual)


def test_a_file_that_is_no_film_of_a_sentence_is_left_alone(begun):
    Trace.from_arrays([[1.0]], name="other").save(begun / FILM)
    with pytest.raises(RefusedError, match=r"and train.record_example is now 'Tom chases Jerry': move the file away"):
        run(begun, max_steps=7)
