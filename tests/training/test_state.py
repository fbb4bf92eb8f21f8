import json

import pytest
import torch
from torch import nn

from regard.config import Train
from regard.errors import DamagedError, RefusedError
from regard.training.checkpoint import load, save
from regard.training.ema import WeightAverage
from regard.training.optimizer import build_optimizer
from regard.training.schedules import Plateau
from regard.training.state import State

from .small import Copies, Network, Plain
from .small import teacher_forcing_loss as loss


def made(model=None, ema=None, steps=0):
    model = model or Network()
    state = State(model, build_optimizer(model, Train()), None if ema is None else WeightAverage(model, ema), Plateau())
    for step in range(steps):
        state.optimiser.zero_grad()
        loss(model, Copies().batch(step)).total.backward()
        state.optimiser.step()
        if state.average:
            state.average.update(model, step)
    state.counters.step = steps
    return state


def with_loss(steps=0, size=2):
    """A state whose loss has a parameter and a buffer of its own."""
    model, beside = Plain(), nn.Linear(size, 1)
    beside.register_buffer("mean", torch.zeros(()))
    state = State(model, build_optimizer(model, Train(), beside), None, Plateau(), loss=beside)
    for step in range(steps):
        state.optimiser.zero_grad()
        (loss(model, Copies().batch(step)).total + beside(torch.ones(1, size)).square().sum()).backward()
        state.optimiser.step()
        beside.mean += 1
    state.counters.step = steps
    return state


def saved(state, folder):
    return load(save(folder, state.counters.step, state.tensors(), state.table()))


def test_a_restored_state_is_the_saved_one(tmp_path):
    state, other = made(ema=0.9, steps=3), made(ema=0.9)
    state.counters.skipped, state.counters.best, state.counters.stretch = 4, 0.1 + 0.2, {"sums": {"loss": 0.1 + 0.2}}
    state.plateau.see(2.0)
    other.restore(saved(state, tmp_path))
    assert other.counters == state.counters
    assert other.plateau == state.plateau
    mine, theirs = state.tensors(), other.tensors()
    assert set(mine) == set(theirs)
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert {name.partition(".")[0] for name in mine} == {"model", "optimiser", "ema"}


def test_the_numbers_are_plain_json():
    table = made().table()
    assert json.loads(json.dumps(table)) == table


def test_a_checkpoint_of_another_model_is_refused_and_changes_nothing(tmp_path):
    found, other = saved(made(steps=1), tmp_path), made(Plain())
    before = {name: value.clone() for name, value in other.tensors().items()}
    with pytest.raises(
        RefusedError, match=r"/1 is of another model: embedding.weight has shape \(12, 8\) there and \(12, 4\) here"
    ):
        other.restore(found)
    assert all(torch.equal(value, other.tensors()[name]) for name, value in before.items())


def test_a_checkpoint_of_an_earlier_version_lacks_counters_that_were_added_since(tmp_path):
    found = saved(made(steps=1), tmp_path)
    for name in ("log_lines", "stretch"):
        del found.counters[name]
    state = made()
    state.restore(found)
    assert (state.counters.step, state.counters.log_lines, state.counters.stretch) == (1, None, {})


def test_a_missing_counter_is_named(tmp_path):
    found = saved(made(steps=1), tmp_path)
    del found.counters["skipped"]
    with pytest.raises(RefusedError, match="has no counter skipped: it was not written by this loop"):
        made().restore(found)


@pytest.mark.parametrize(
    ("counter", "value", "text"),
    [
        ("step", "x", r"/1 has a counter step that is none: Input should be a valid integer, .*, got 'x'"),
        ("seconds", None, r"/1 has a counter seconds that is none: .*, got None"),
        ("stretch", [], r"/1 has a counter stretch that is none: .*, got \[\]"),
    ],
)
def test_a_counter_of_another_type_is_damaged(tmp_path, counter, value, text):
    found = saved(made(steps=1), tmp_path)
    found.counters[counter] = value
    with pytest.raises(DamagedError, match=text):
        made().restore(found)


@pytest.mark.parametrize("value", [None, [], {}, {"patience": "x"}, {"best": {}}])
def test_a_schedule_that_is_none_is_damaged(tmp_path, value):
    found = saved(made(steps=1), tmp_path)
    found.counters["plateau"] = {**found.counters["plateau"], **value} if value else value
    state = made()
    before = state.tensors()
    if value == {}:  # every number of it has a default
        return state.restore(found)
    with pytest.raises(
        DamagedError, match=r"/1 cannot be opened, something in it is not as regard writes it: ValidationError"
    ):
        state.restore(found)
    assert all(torch.equal(each, state.tensors()[name]) for name, each in before.items())
    return None


@pytest.mark.parametrize("name", ["optimiser.embedding.weight.exp_avg", "ema.embedding.weight"])
def test_what_belongs_to_a_parameter_has_its_shape(tmp_path, name):
    found = saved(made(ema=0.9, steps=1), tmp_path)
    found.tensors[name] = found.tensors[name][:1]
    with pytest.raises(
        RefusedError, match=r"of another model: .*embedding\.weight.* has shape \(1, 8\) there and \(12, 8\) here"
    ):
        made(ema=0.9).restore(found)


def test_a_missing_moving_average_and_a_foreign_optimiser_are_named(tmp_path):
    found = saved(made(steps=1), tmp_path)
    with pytest.raises(
        RefusedError, match=r"has no moving average of embedding.weight: it was trained without train.ema_decay"
    ):
        made(ema=0.9).restore(found)
    frozen = Network()
    frozen.output.bias.requires_grad_(False)
    with pytest.raises(RefusedError, match=r"its optimiser knows output.bias, which does not learn here"):
        made(frozen).restore(found)


def test_a_loss_that_learns_is_saved_and_restored_beside_the_model(tmp_path):
    state, other = with_loss(steps=3), with_loss()
    other.restore(saved(state, tmp_path))
    mine, theirs = state.tensors(), other.tensors()
    assert {name for name in mine if "loss." in name} == {
        "loss.weight",
        "loss.bias",
        "loss.mean",
        *(f"optimiser.loss.{name}.{what}" for name in ("weight", "bias") for what in ("step", "exp_avg", "exp_avg_sq")),
    }
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert mine["loss.mean"] == 3


def test_a_checkpoint_of_another_loss_is_refused_and_changes_nothing(tmp_path):
    found, other = saved(with_loss(steps=1), tmp_path), with_loss(size=3)
    before = {name: value.clone() for name, value in other.tensors().items()}
    with pytest.raises(
        RefusedError, match=r"the loss in .*/1 is of another model: weight has shape \(1, 2\) there and \(1, 3\)"
    ):
        other.restore(found)
    assert all(torch.equal(value, other.tensors()[name]) for name, value in before.items())
    with pytest.raises(RefusedError, match=r"the loss in .*/1 is of another model: it has (weight|bias|mean) with shape"):
        made(Plain()).restore(found)
