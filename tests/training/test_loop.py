import json
import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from regard.models.types import Step
from regard.training import loop
from regard.training.checkpoint import steps
from regard.training.directory import verify
from regard.training.errors import FailedError
from regard.training.loop import train
from regard.training.losses import teach
from regard.training.weights import weights

from .small import Copies, Network, Part, Plain, experiment, fingerprint


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
    monkeypatch.setattr(loop, "reseed", lambda *arguments: None)
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


def test_accumulated_batches_are_one_update(tmp_path):
    class Joined(Copies):
        """Two batches of the other in one."""

        def batch(self, step):
            first, second = super().batch(2 * step), super().batch(2 * step + 1)
            return loop.Batch(*(merge(getattr(first, side), getattr(second, side)) for side in ("source", "target")))

    def merge(left, right):
        from regard.data.batch import pad

        return pad([row[keep].tolist() for each in (left, right) for row, keep in zip(each.data, each.keep, strict=True)])

    part, settings = Part(dropout=0.0), {"max_steps": 5, "optimiser": "sgd", "rate": 0.5}
    first = experiment(part=part, accumulate=2, **settings)
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


def test_upwards_the_greatest_is_best(tmp_path):
    scores = iter([1.0, 3.0, 2.0, 0.0])
    made = replace(experiment(), better="bleu", upwards=True, evaluate=lambda model: {"bleu": next(scores)})
    assert train(made, tmp_path, quiet=True)["valid"] == {"bleu": 3.0}


def test_figures_that_are_not_numbers_never_win(tmp_path):
    made = replace(experiment(schedule="plateau"), evaluate=lambda model: {"loss": math.nan})
    train(made, tmp_path, quiet=True)
    saved = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(value, saved[name]) for name, value in weights(made.model).items())


def test_the_average_of_the_last_checkpoints_is_published(tmp_path):
    made = experiment(max_steps=20, average=3)
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

    train(replace(experiment(max_steps=5, ema=0.99), evaluate=evaluate), tmp_path, quiet=True)
    state = load_file(tmp_path / "checkpoints" / "5" / "state.safetensors")
    assert [each[:2] for each in seen] == [(False, False)]
    assert torch.equal(seen[0][2], state["ema.output.bias"])
    assert not torch.equal(seen[0][2], state["model.output.bias"])


def test_the_loss_is_told_how_far_the_training_is(tmp_path):
    seen = []

    def watched(model, batch, progress):
        seen.append(progress)
        return teach(model, batch)

    train(replace(experiment(max_steps=3), loss=watched), tmp_path, quiet=True)
    assert seen == [(0, 3), (1, 3), (2, 3)]


def test_the_rate_follows_the_schedule(tmp_path):
    train(experiment(max_steps=4, rate=1.0, schedule="noam", warmup=2, log_every=1), tmp_path, quiet=True)
    rates = [line["rate"] for line in log(tmp_path) if "rate" in line]
    assert rates == pytest.approx([8**-0.5 * min(n**-0.5, n * 2**-1.5) for n in (1, 2, 3, 4)])


def test_a_model_without_attention_trains_as_well(tmp_path):
    made = experiment(Plain(), max_steps=10)
    train(made, tmp_path, quiet=True)
    assert not any("attention" in line for line in log(tmp_path))


def test_attention_health_is_in_the_log_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.training.health.SHARE", 1e9)
    train(experiment(max_steps=5), tmp_path, quiet=True)
    (line,) = (line for line in log(tmp_path) if "loss" in line)
    assert set(line["attention"]["attention"]) == {"entropy", "coverage", "diagonality", "dead", "heads", "gradient"}


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


class Beside(nn.Module):
    """A loss with a parameter of its own, whose slope is set by `steer` and that adds nothing to the figure."""

    def __init__(self, steer):
        super().__init__()
        self.own, self.steer = nn.Parameter(torch.zeros(())), steer

    def forward(self, model, batch, progress):
        found, more = teach(model, batch), self.steer(self.own)
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
    made = replace(experiment(max_steps=3, bad_batches=9), loss=Beside(torch.sqrt))  # at 0: infinitely steep
    before = {name: value.clone() for name, value in weights(made.model).items()}
    assert train(made, tmp_path, quiet=True)["skipped"] == 3
    assert all(torch.equal(value, before[name]) for name, value in weights(made.model).items())
    assert made.loss.own.item() == 0
