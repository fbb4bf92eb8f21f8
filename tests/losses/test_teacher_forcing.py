import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from regard.attention.module import Attention
from regard.config import AttentionPart, Dropout, Model, Train
from regard.data.batch import Batch, Padded, shifted
from regard.losses.cross_entropy import cross_entropy
from regard.losses.teacher_forcing import TeacherForcing, compute_target_logprobs, teacher_forcing_loss
from regard.losses.types import Loss, Progress
from regard.metrics.text import token_perplexity
from regard.models.seq2seq import build
from regard.training import evaluator
from regard.training.loop import train
from regard.training.seed import reseed

from ..training.small import VOCABULARY, Copies, Network, Plain, experiment, fingerprint

HALF = torch.tensor([[[0.0, 0.0], [0.0, math.log(3.0)], [7.0, -7.0]]])  # p = (1/2, 1/2), (1/4, 3/4), padding
TARGET = Padded(torch.tensor([[0, 1, 0]]), torch.tensor([[True, True, False]]))


def test_the_input_is_the_target_one_place_later():
    assert shifted(torch.tensor([[5, 6, 2], [7, 2, 0]])).tolist() == [[1, 5, 6], [1, 7, 2]]


def test_teaching_feeds_the_shifted_target_and_scores_the_target():
    model, batch = Network(dropout=0.0), Copies().batch(0)
    loss = teacher_forcing_loss(model, batch)
    logits = model(batch.source, shifted(batch.target.data)).output
    assert loss.total.item() == pytest.approx(cross_entropy(logits, batch.target).item())
    assert loss.tokens == batch.target.keep.sum()


def test_a_model_is_told_to_use_its_own_output_only_when_it_should():
    seen = []

    class Watched(Plain):
        def forward(self, source, target, **options):
            seen.append(options)
            return super().forward(source, target)

    teacher_forcing_loss(Watched(), Copies().batch(0))
    teacher_forcing_loss(Watched(), Copies().batch(0), own=0.25)
    assert seen == [{}, {"own": 0.25}]


def test_teaching_needs_targets():
    with pytest.raises(ValueError, match="teacher forcing needs a batch with targets"):
        teacher_forcing_loss(Plain(), Copies().batch(0)._replace(target=None))


def test_perplexity_is_the_exponential_of_the_mean():
    assert token_perplexity(2 * math.log(8), 2) == pytest.approx(8)
    assert token_perplexity(1e6, 1) == math.inf


def drawing(**options) -> Network:
    """A small network that draws where it looks."""
    torch.manual_seed(0)
    model = Network(**options)
    model.attention = Attention(8, score="additive", normalise="hard")
    return model


def test_the_likelihood_of_each_kept_token_is_its_log_probability():
    assert compute_target_logprobs(HALF, TARGET).flatten().tolist() == pytest.approx([math.log(0.5), math.log(0.75), 0.0])


def test_a_teacher_teaches_as_its_settings_say():
    settings = Train(
        label_smoothing=0.1,
        confidence_penalty=0.2,
        coverage_weight=0.3,
        scheduled_sampling="constant",
        scheduled_sampling_max=0.25,
    )
    fed = []

    class Watched(Network):
        def forward(self, source, target, own=0.0, **options):
            fed.append(own)
            return super().forward(source, target, **options)

    model, batch = Watched(dropout=0.0), Copies().batch(0)
    found = TeacherForcing(settings, model)(model, batch, Progress(0, 10))
    expected = teacher_forcing_loss(model, batch, smoothing=0.1, confidence=0.2, coverage=0.3)
    assert found.total.item() == pytest.approx(expected.total.item())
    assert fed == [0.25, 0.0]


def test_a_model_that_draws_nothing_has_nothing_to_pay_and_nothing_to_keep():
    model, batch = Network(dropout=0.0), Copies().batch(0)
    teacher = TeacherForcing(Train(reinforce_baseline="learned"), model)
    assert teacher.state_dict() == {}
    found = teacher(model, batch, Progress(0, 1))
    assert found.total.item() == teacher_forcing_loss(model, batch).total.item()
    assert set(found.parts) == {"nll"}
    teacher.update_baseline(found)


def test_draws_teach_the_score_and_cost_only_what_being_undecided_earns():
    model, batch = drawing(dropout=0.0), Copies().batch(0)
    teacher = TeacherForcing(Train(entropy_bonus=0.5), model)
    found = teacher(model, batch, Progress(0, 1))
    assert found.total.item() == pytest.approx(
        (found.parts["nll"] - 0.5 * found.parts["attention_entropy"]).item(), rel=1e-5
    )
    found.total.backward()
    assert model.attention.score.v.weight.grad.any()
    model.zero_grad()
    teacher_forcing_loss(model, batch).total.backward()
    assert model.attention.score.v.weight.grad is None  # without a teacher of looks


def test_looks_that_are_not_drawn_teach_the_score_by_what_they_find():
    model, batch = drawing(dropout=0.0), Copies().batch(0)
    TeacherForcing(Train(soft_attention_rate=0.5), model)
    teacher_forcing_loss(model, batch).total.backward()
    assert model.attention.score.v.weight.grad.any()  # without a teacher of looks


@pytest.mark.parametrize("name", ["additive+hard", "additive+gumbel"])
@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_the_gradient_of_a_recurrent_decoder_is_that_of_what_was_drawn(name, order):
    """It may not be put off and taken from other draws, as that of attentions that draw nothing is."""
    kind = Model(hidden_size=8, attention=AttentionPart(name), order=order)
    model, batch = build(kind, Dropout(embedding=0.0, residual=0.0), VOCABULARY, VOCABULARY, joint=False), Copies().batch(0)
    found = []
    for coverage in (0.0, 1e-30):  # weights that are asked for are never put off
        torch.manual_seed(1)
        teacher = TeacherForcing(Train(coverage_weight=coverage), model)
        model.zero_grad()
        torch.manual_seed(2)
        teacher(model, batch, Progress(0, 1)).total.backward()
        found.append({path: parameter.grad for path, parameter in model.named_parameters()})
    assert all(each is not None for each in found[0].values())
    for path, gradient in found[0].items():
        torch.testing.assert_close(gradient, found[1][path], msg=lambda text, path=path: f"{path}: {text}")


def test_nothing_is_drawn_and_nothing_paid_in_evaluation():
    model, batch = drawing(dropout=0.0).eval(), Copies().batch(0)
    found = TeacherForcing(Train(), model)(model, batch, Progress(0, 1))
    assert found.total.item() == found.parts["nll"].item()
    assert set(found.parts) == {"nll"}


def test_a_teacher_sees_the_log_likelihood_of_a_token_after_each_update():
    teacher = TeacherForcing(Train(), drawing())
    teacher.update_baseline(Loss(torch.tensor(9.0), torch.tensor(4), {"nll": torch.tensor(12.0)}))
    assert teacher.looks.baseline.mean.item() == -3.0
    teacher.update_baseline(Loss(torch.tensor(0.0), 0, {"nll": 0.0}))  # a batch of nothing
    assert teacher.looks.baseline.mean.item() == pytest.approx(-2.7)
    TeacherForcing(Train(reinforce_baseline="none"), drawing()).update_baseline(Loss(torch.tensor(9.0), 4, {"nll": 12.0}))


def hard(baseline: str, **settings):
    """An experiment whose attention draws; its loss is built from its settings."""
    made = experiment(drawing(), reinforce_baseline=baseline, **settings)
    return replace(made, loss=TeacherForcing(made.config.train, made.model))


@pytest.mark.parametrize("baseline", ["none", "moving_average", "learned"])
def test_hard_attention_stopped_anywhere_goes_on_without_changing_a_bit(tmp_path, baseline):
    train(hard(baseline, max_steps=20, ema_decay=0.9), tmp_path / "whole", quiet=True)
    for last in (3, 10, 20):
        train(hard(baseline, max_steps=last, ema_decay=0.9), tmp_path / "cut", quiet=True)
    whole, cut = fingerprint(tmp_path / "whole"), fingerprint(tmp_path / "cut")
    assert whole["20"] == cut["20"]
    held = load_file(tmp_path / "cut" / "checkpoints" / "20" / "state.safetensors")
    kept = {name for name in held if "loss." in name}
    expected = {
        "none": set(),
        "moving_average": {"loss.looks.baseline.mean"},
        "learned": {
            "loss.looks.baseline.average.mean",
            "loss.looks.baseline.v.0",
            "optimiser.loss.looks.baseline.v.0.exp_avg",
        },
    }
    assert expected[baseline] <= kept
    assert bool(kept) == (baseline != "none")
    assert not any("baseline" in name for name in load_file(tmp_path / "cut" / "model.safetensors"))


def test_that_comparison_bites_where_the_baseline_is_forgotten(tmp_path, monkeypatch):
    train(hard("moving_average", max_steps=20), tmp_path / "whole", quiet=True)
    train(hard("moving_average", max_steps=10), tmp_path / "cut", quiet=True)
    resume = evaluator.results.resume

    def forgetful(run, state):
        found = resume(run, state)
        state.loss.looks.baseline.mean.zero_()
        return found

    monkeypatch.setattr(evaluator.results, "resume", forgetful)
    train(hard("moving_average", max_steps=20), tmp_path / "cut", quiet=True)
    assert fingerprint(tmp_path / "whole")["20"] != fingerprint(tmp_path / "cut")["20"]


def test_a_skipped_batch_does_not_spoil_the_baseline(tmp_path):
    made = hard("moving_average", max_steps=6)
    teacher, seen = made.loss, []

    class Poisoned(TeacherForcing):
        def forward(self, model, batch, progress):
            found = super().forward(model, batch, progress)
            if progress.step != 3:
                return found
            return Loss(found.total * math.nan, found.tokens, {"nll": found.parts["nll"] * math.nan})

        def update_baseline(self, loss):
            super().update_baseline(loss)
            seen.append(self.looks.baseline.mean.item())

    poisoned = Poisoned(teacher.settings, made.model)
    train(replace(made, loss=poisoned), tmp_path, quiet=True)
    assert len(seen) == 5
    assert all(math.isfinite(each) for each in seen)


def test_accumulated_batches_are_seen_as_one_update(tmp_path):
    made = hard("moving_average", max_steps=1, accumulate_steps=3)
    reseed(made.config.train.seed, 0, torch.device("cpu"))
    found = [made.loss(made.model, made.train.batch(number), Progress(0, 1)) for number in range(3)]
    mean = sum(each.parts["nll"] for each in found) / sum(each.tokens for each in found)
    train(made, tmp_path, quiet=True)
    assert made.loss.looks.baseline.mean.item() == pytest.approx(-mean.item(), rel=1e-5)


def test_packed_rows_are_taught_by_the_likelihood_of_targets_alone():
    padded = Padded(torch.tensor([[4, 2, 5, 2]]), torch.ones(1, 4, dtype=torch.bool), torch.tensor([[1, 1, 2, 2]]))
    with pytest.raises(ValueError, match="packed rows can be trained by the likelihood of their targets alone, got own"):
        teacher_forcing_loss(Network(), Batch(padded, padded), coverage=1.0)


def test_a_teacher_of_packed_rows_refuses_settings_that_go_by_rows():
    with pytest.raises(ValueError, match=r"train\.coverage_weight=1\.0 takes a row for one"):
        TeacherForcing(Train(packing_length=64, coverage_weight=1.0), Network())
