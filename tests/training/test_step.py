import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from regard import tasks
from regard.config import AttentionPart
from regard.data.batch import Batch
from regard.errors import FailedError
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.models.types import Step
from regard.training import step as update
from regard.training.loop import train
from regard.training.state_dict import weights
from regard.training.throughput import Throughput

from .small import Copies, Part, experiment


def test_accumulated_batches_are_one_update(tmp_path):
    class Joined(Copies):
        """Two batches of the other in one."""

        def batch(self, step):
            first, second = super().batch(2 * step), super().batch(2 * step + 1)
            return Batch(*(merge(getattr(first, side), getattr(second, side)) for side in ("source", "target")))

    def merge(left, right):
        from regard.data.batch import pad

        return pad([row[keep].tolist() for each in (left, right) for row, keep in zip(each.data, each.keep, strict=True)])

    part, settings = Part(dropout=0.0), {"max_steps": 5, "optimizer": "sgd", "learning_rate": 0.5}
    first = experiment(part=part, accumulate_steps=2, **settings)
    second = replace(experiment(part=part, **settings), train=Joined())
    second.model.load_state_dict(first.model.state_dict())
    train(first, tmp_path / "1", quiet=True)
    train(second, tmp_path / "2", quiet=True)
    for left, right in zip(first.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(left, right)


def test_bf16_is_for_the_operations_and_the_weights_stay_in_fp32(tmp_path):
    seen = []

    class Table(nn.Module):
        """Nothing but a table of logits."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(12, 12)

        def forward(self, source, target):
            seen.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")))
            return Step(self.embedding(target), (), {})

    for precision in ("bf16", "fp32"):
        train(experiment(Table(), max_steps=2, precision=precision), tmp_path / precision, quiet=True)
        assert {value.dtype for value in load_file(tmp_path / precision / "model.safetensors").values()} == {torch.float32}
    assert seen[:3] == [(True, torch.bfloat16)] * 3  # two updates, one evaluation
    assert [on for on, _ in seen[3:]] == [False] * 3


def test_the_loss_is_told_how_far_the_training_is(tmp_path):
    seen = []

    def watched(model, batch, progress):
        seen.append(progress)
        return teacher_forcing_loss(model, batch)

    train(replace(experiment(max_steps=3), loss=watched), tmp_path, quiet=True)
    assert seen == [(0, 3), (1, 3), (2, 3)]


def test_the_rate_follows_the_schedule(tmp_path):
    train(experiment(max_steps=4, learning_rate=1.0, schedule="noam", warmup_steps=2, log_every=1), tmp_path, quiet=True)
    rates = [line["learning_rate"] for line in log(tmp_path) if "learning_rate" in line]
    assert rates == pytest.approx([8**-0.5 * min(n**-0.5, n * 2**-1.5) for n in (1, 2, 3, 4)])


class Beside(nn.Module):
    """A loss with a parameter of its own, whose slope is set by `steer` and that adds nothing to the figure."""

    def __init__(self, steer):
        super().__init__()
        self.own, self.steer = nn.Parameter(torch.zeros(())), steer

    def forward(self, model, batch, progress):
        found, more = teacher_forcing_loss(model, batch), self.steer(self.own)
        return found._replace(total=found.total + more - more.detach())


def test_a_loss_that_learns_does_not_hold_the_model_back(tmp_path):
    made = replace(experiment(max_steps=5), loss=Beside(lambda own: 1e6 * own))
    train(made, tmp_path / "beside", quiet=True)
    train(experiment(max_steps=5), tmp_path / "alone", quiet=True)
    assert made.loss.own.item() != 0
    states = [load_file(tmp_path / name / "checkpoints" / "5" / "state.safetensors") for name in ("alone", "beside")]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    assert set(states[1]) - set(states[0]) == {
        "loss.own",
        *(f"optimiser.loss.own.{each}" for each in ("step", "exp_avg", "exp_avg_sq")),
    }


def test_a_batch_whose_loss_gets_no_finite_gradient_is_skipped(tmp_path):
    made = replace(experiment(max_steps=3, max_bad_batches=9), loss=Beside(torch.sqrt))  # at 0: infinitely steep
    before = {name: value.clone() for name, value in weights(made.model).items()}
    assert train(made, tmp_path, quiet=True)["skipped"] == 3
    assert all(torch.equal(value, before[name]) for name, value in weights(made.model).items())
    assert made.loss.own.item() == 0


def log(directory):
    return [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("bad", [None, 2])
def test_a_step_that_is_begun_before_its_loss_is_known_is_the_same(monkeypatch, bad):
    """A fused optimiser is told on the device to leave the weights alone, any other by the host."""

    class Spoilt(Copies):
        def batch(self, step):
            with torch.no_grad():
                made.model.scale.fill_(torch.nan if step == bad else 2.0)
            return super().batch(step)

    before, found = update.build_optimizer, []
    for fused in (False, True):
        torch.manual_seed(0)
        made = experiment(part=Part(dropout=0.0), optimizer="adamw", learning_rate=0.01, max_bad_batches=3)

        def optimiser(*given, fused=fused):
            return torch.optim.AdamW([{**group, "fused": fused} for group in before(*given).param_groups], 0.01, fused=fused)

        monkeypatch.setattr(update, "build_optimizer", optimiser)
        run, batches = update.Update(made), Spoilt()
        for step in range(4):
            run([batches.batch(step)], Throughput())
        assert run.state.counters.skipped == (bad is not None)
        found.append([each.detach().clone() for each in made.model.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def late(monkeypatch, bad, **train):
    """An update that is looked at when the next one has been queued, and a bad batch."""
    before = update.build_optimizer

    def optimiser(*given):
        return torch.optim.AdamW([{**group, "fused": True} for group in before(*given).param_groups], 0.01, fused=True)

    class Spoilt(Copies):
        def batch(self, step):
            with torch.no_grad():
                made.model.scale.fill_(torch.nan if step in bad else 2.0)
            return super().batch(step)

    torch.manual_seed(0)
    monkeypatch.setattr(update, "build_optimizer", optimiser)
    made = experiment(part=Part(dropout=0.0), optimizer="adamw", learning_rate=0.01, **train)
    return made, update.Update(made), Spoilt()


def test_an_update_that_is_looked_at_later_is_the_same(monkeypatch):
    found = []
    for waits in (False, True):
        made, run, batches = late(monkeypatch, bad={1}, max_bad_batches=3)
        run.late, speed = waits, Throughput()
        for step in range(4):
            run([batches.batch(step)], speed)
            assert (run.queued is not None) == waits
        run.settle(speed)
        assert run.queued is None
        counters = run.state.counters
        found.append(([each.detach().clone() for each in made.model.parameters()], speed.record()["loss"],
                      counters.step, counters.tokens, counters.skipped, run.last))  # fmt: skip
        monkeypatch.undo()
    (weights, *one), (others, *other) = found
    assert one == other
    assert one[1] == 4
    assert one[3] == 1
    for each, same in zip(weights, others, strict=True):
        assert each.equal(same)


def test_too_many_bad_batches_are_named_by_their_own_step(monkeypatch):
    _, run, batches = late(monkeypatch, bad={1, 2}, max_bad_batches=2)
    run.late, speed = True, Throughput()
    for step in range(3):
        run([batches.batch(step)], speed)
    with pytest.raises(FailedError, match="the last at step 2 "):
        run.settle(speed)


def test_a_run_whose_updates_are_looked_at_later_keeps_the_same_checkpoints_and_log(monkeypatch, tmp_path):
    kept = []
    for waits in (False, True):
        made, run, _ = late(monkeypatch, bad=(), max_steps=7, evaluate_every=3, checkpoint_every=2, log_every=2)
        made_late = type(run).__init__

        def init(self, given, waits=waits, before=made_late):
            before(self, given)
            self.late = waits

        monkeypatch.setattr(update.Update, "__init__", init)
        directory = tmp_path / str(waits)
        train(made, directory, quiet=True)
        lines = [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
        timed = ("time", "seconds", "tokens_per_second", "waited")
        kept.append([{name: value for name, value in line.items() if name not in timed} for line in lines])
        kept[-1].append((directory / "model.safetensors").read_bytes())
        monkeypatch.undo()
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("attention", "train", "late"),
    [
        ("additive", {}, True),
        ("additive", {"ema_decay": 0.9}, False),
        ("additive+hard", {"reinforce_baseline": "moving_average"}, False),
        ("additive+hard", {"reinforce_baseline": "none"}, True),
    ],
)
def test_updates_of_a_teacher_are_looked_at_later_unless_they_go_by_what_it_cost(monkeypatch, attention, train, late):
    """As on a GPU, whose graphs are not made here."""
    monkeypatch.setattr(update, "covers", lambda experiment, device: None)
    monkeypatch.setattr(update, "GraphedLoss", lambda *given: object())
    monkeypatch.setattr(update, "is_fused", lambda optimiser: True)
    config = tasks.find("reverse").Config()
    model = replace(config.model, attention=AttentionPart(attention), hidden_size=8)
    data, made = replace(config.data, samples=40), replace(config.train, device="cpu", **train)
    built, _ = tasks.experiment("reverse", replace(config, model=model, data=data, train=made))
    assert update.Update(built).late is late
