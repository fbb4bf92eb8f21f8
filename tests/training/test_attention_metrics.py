import math
import time

import pytest
import torch
from torch import nn

from regard.attention.statistics import measure as statistics
from regard.attention.types import Attended, Encoded
from regard.data.batch import Batch, Padded, pad
from regard.models.types import Step
from regard.training import attention_metrics
from regard.training.attention_metrics import STATISTICS, AttentionMetrics, build_probe, correlation, summarise

from .small import Copies, Network, Plain, experiment

CPU = torch.device("cpu")


def attended(weights, allowed=None):
    weights = torch.as_tensor(weights, dtype=torch.float32)
    return Attended(torch.zeros(1), None, statistics(weights, allowed, STATISTICS))


def test_a_straight_alignment_is_healthy():
    found = summarise(attended(torch.eye(4)[None, None]))
    assert found == pytest.approx({"entropy": 0.0, "coverage": 1.0, "diagonality": 1.0, "dead": 0, "heads": 1})


def test_a_reversed_alignment_runs_backwards():
    assert summarise(attended(torch.eye(4).flip(0)[None, None]))["diagonality"] == pytest.approx(-1.0)


def test_heads_that_look_everywhere_or_always_at_one_place_are_dead():
    even, stuck, alive = torch.full((4, 4), 0.25), torch.eye(4)[[2, 2, 2, 2]], torch.eye(4)
    found = summarise(attended(torch.stack((even, stuck, alive))[None]))
    assert (found["dead"], found["heads"]) == (2, 3)
    assert found["entropy"] == pytest.approx(1 / 3)
    assert found["coverage"] == pytest.approx((1 + 0.25 + 1) / 3)


def test_padding_counts_neither_as_sight_nor_as_overlooked():
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])[None, None]
    allowed = torch.tensor([True, True, False])[None, None, None]
    found = summarise(attended(weights, allowed))
    assert (found["entropy"], found["coverage"]) == pytest.approx((1.0, 1.0))


def test_a_single_query_or_key_kills_no_head():
    assert summarise(attended(torch.ones(1, 1, 1, 1)))["dead"] == 0
    assert summarise(attended(torch.full((1, 1, 1, 4), 0.25)))["dead"] == 0


def test_correlation_of_what_does_not_move_is_nothing():
    assert correlation(torch.tensor([[2.0, 2.0, 2.0], [0.0, 1.0, 2.0]])).tolist() == pytest.approx([0.0, 1.0])


def test_the_probe_has_targets_of_one_length():
    batch = Batch(pad([[4, 2], [4, 5, 2], [4, 2], [6, 6, 6, 2]]), pad([[4, 2], [4, 5, 2], [5, 2], [4, 2]]))
    found = build_probe(batch)
    assert found.target.data.tolist() == [[4, 2], [5, 2], [4, 2]]
    assert found.target.keep.all()
    assert found.source.data.shape == (3, 4)
    assert build_probe(batch._replace(target=None)).target is None


def test_a_probe_of_long_targets_takes_the_shortest():
    batch = Batch(pad([[4, 2], [4, 2]]), pad([[4] * 40, [4] * 50]))
    assert build_probe(batch).target.data.shape == (1, 40)


def test_looking_gives_the_figures_of_each_attention_and_the_gradient_through_its_weights():
    made = experiment()
    found = AttentionMetrics(made, CPU).measure(made.model, 1e9)
    assert set(found) == {"attention"}
    assert set(found["attention"]) == {"entropy", "coverage", "diagonality", "dead", "heads", "gradient"}
    assert found["attention"]["gradient"] > 0
    assert all(math.isfinite(value) for value in found["attention"].values())


def test_the_gradient_is_that_of_the_loss_per_token():
    model, batch = Network(dropout=0.0), build_probe(Copies().batch(0))
    step = model(batch.source, attention_metrics.shifted(batch.target.data), weights=True, statistics=())
    weights = step.attended["attention"].weights
    loss = attention_metrics.cross_entropy(step.output, batch.target) / batch.target.keep.sum()
    wanted = torch.autograd.grad(loss, weights)[0].norm().item()
    assert attention_metrics.measure_attentions(model, batch)["attention"]["gradient"] == pytest.approx(wanted)


def test_the_gradients_of_many_calls_are_one_length():
    class Twice(Network):
        """Asks one position at a time."""

        def forward(self, source, target, **options):
            memory = self.attention.remember(Encoded(self.embedding(source.data), source.keep))
            looks = [
                self.attention(self.embedding(target[:, [place]]), memory, **options) for place in range(target.shape[1])
            ]
            return Step(self.output(torch.cat([each.context for each in looks], 1)), (), {"attention": looks[0]})

    class Once(Twice):
        def forward(self, source, target, **options):
            memory = self.attention.remember(Encoded(self.embedding(source.data), source.keep))
            look = self.attention(self.embedding(target), memory, **options)
            return Step(self.output(look.context), (), {"attention": look})

    first, second, batch = Twice(), Once(), build_probe(Copies().batch(0))
    second.load_state_dict(first.state_dict())
    found = [attention_metrics.measure_attentions(each, batch)["attention"]["gradient"] for each in (first, second)]
    assert found[0] == pytest.approx(found[1])


def test_looking_leaves_the_model_as_it_was():
    made = experiment()
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    made.model.train()
    AttentionMetrics(made, CPU).measure(made.model, 1e9)
    assert made.model.training
    assert all(parameter.grad is None for parameter in made.model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in made.model.state_dict().items())


def test_models_without_attention_have_none():
    made = experiment(Plain())
    assert AttentionMetrics(made, CPU).measure(made.model, 1e9) == {}

    class Open(nn.Module):
        def forward(self, source, target, **options):
            return Plain()(source, target)

    looking = AttentionMetrics(experiment(Open()), CPU)
    assert looking.measure(Open(), 1e9) == {}
    assert not looking.possible


def test_models_that_refuse_the_question_are_not_asked_again():
    class Strict(nn.Module):
        def forward(self, source, target, **options):
            return Plain()(source, target, **options)

    looking = AttentionMetrics(experiment(Strict()), CPU)
    assert looking.measure(Strict(), 1e9) == {}
    assert not looking.possible


def test_looking_takes_no_more_than_a_fiftieth_of_the_time(monkeypatch):
    made, now = experiment(), [0.0]
    looking = AttentionMetrics(made, CPU)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def slow(model, batch):
        now[0] += 1.0
        return {"attention": {}}

    monkeypatch.setattr(attention_metrics, "measure_attentions", slow)
    for _ in range(1000):
        now[0] += 1.0
        looking.measure(made.model, now[0])
        assert looking.spent <= max(1.0, 0.02 * now[0] + 1e-9)
    assert looking.spent >= 0.015 * now[0]


def test_examples_that_share_a_row_are_probed_one_by_one():
    keep, numbers = torch.ones(1, 4, dtype=torch.bool), torch.tensor([[1, 1, 2, 2]])
    packed = Padded(torch.tensor([[4, 2, 5, 2]]), keep, numbers)
    found = build_probe(Batch(packed, packed, ((0, 1),)))
    assert found.source.data.tolist() == [[4, 2], [5, 2]]
    assert found.source.documents is None
