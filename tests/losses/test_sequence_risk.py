import itertools
import math
from dataclasses import replace

import pytest
import torch

from regard.config import AttentionPart, Data, Dropout, Model, Search, Train
from regard.data.batch import Batch, pad
from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.losses.candidates import decode_greedily, sample_outputs
from regard.losses.sequence_risk import Risk, minimum_risk, self_critical
from regard.losses.teacher_forcing import TeacherForcing, teacher_forcing_loss
from regard.losses.types import Loss, Progress
from regard.metrics.reward import Reward
from regard.models.seq2seq import build
from regard.tasks import experiment, find
from regard.training.loop import train

from ..training.small import fingerprint

A, B = 4, 5
VOCABULARY = 6
LENGTH = 2
REFERENCE = [B, EOS]
BATCH = Batch(pad([[A, B, EOS]]), pad([REFERENCE]))
LOGS = torch.tensor([[math.log(0.5), math.log(0.25), 3.0]])
REWARDS = torch.tensor([[1.0, 0.4, 0.9]])
KEEP = torch.tensor([[True, True, False]])


def network(decoder="recurrent", attention="additive", vocabulary=VOCABULARY):
    torch.manual_seed(0)
    kind = Model(hidden_size=8, heads=2, encoder=decoder, decoder=decoder, attention=AttentionPart(attention, heads=2))
    return build(kind, Dropout(embedding=0.0, residual=0.0), vocabulary, vocabulary, joint=False)


def risk(kind="minimum_risk", metric="edit", **settings) -> Risk:
    settings = {"minimum_risk_alpha": 1.0, "sequence_samples": 4, **settings}
    return Risk(Train(sequence_loss=kind, sequence_metric=metric, **settings), Reward(metric, str), LENGTH)


def everything() -> list[list[int]]:
    """Every output there is: tokens and then EOS, or as many tokens as are allowed."""
    tokens = (UNK, A, B)
    ended = [[*each, EOS] for length in range(LENGTH) for each in itertools.product(tokens, repeat=length)]
    return ended + [list(each) for each in itertools.product(tokens, repeat=LENGTH)]


def likelihood(model, output: list[int]) -> torch.Tensor:
    """log p of one output, token by token, as a search goes."""
    memory = model.encode(BATCH.source)
    state, token, total = model.decoder.start(memory), torch.tensor([BOS]), torch.zeros(())
    for number in output:
        step = model.decoder.step(token, memory, state)
        logits = step.output[0].clone()
        logits[[PAD, BOS]] = -torch.inf
        total = total + logits.log_softmax(-1)[number]
        state, token = step.state, torch.tensor([number])
    return total


def gradients(model, value: torch.Tensor) -> dict[str, torch.Tensor]:
    found = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
    return {name: each for (name, _), each in zip(model.named_parameters(), found, strict=True) if each is not None}


def expected(model, reward: Reward) -> torch.Tensor:
    """E[1 - reward], over everything."""
    return torch.stack([likelihood(model, each).exp() * (1 - reward(each, REFERENCE)) for each in everything()]).sum()


def test_everything_is_everything():
    model = network()
    assert sum(likelihood(model, each).exp().item() for each in everything()) == pytest.approx(1)


def test_the_risk_of_all_outputs_has_the_gradient_of_the_expected_loss(monkeypatch):
    model, made = network(), risk(minimum_risk_reference=False)
    monkeypatch.setattr(made, "outputs", lambda model, source, references: [everything()])
    found = made(model, BATCH, Loss(torch.zeros(()), 2))
    wanted = 2 * expected(model, made.reward)  # a target of two tokens
    assert found.total.item() == pytest.approx(wanted.item(), rel=1e-5)
    mine, right = gradients(model, found.total), gradients(model, wanted)
    assert mine.keys() == right.keys()
    for name, each in right.items():
        torch.testing.assert_close(mine[name], each, rtol=1e-3, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")


def test_the_mean_self_critical_gradient_is_that_of_the_expected_loss():
    samples = 3000
    model, made = network(), risk("self_critical", sequence_samples=samples)
    right = gradients(model, 2 * expected(model, made.reward))["decoder.output.bias"]
    torch.manual_seed(5)
    mine = gradients(model, made(model, BATCH, Loss(torch.zeros(()), 2)).total)["decoder.output.bias"]
    greedy = made.reward(decode_greedily(model, BATCH.source, [LENGTH])[0], REFERENCE)
    each = [(likelihood(model, output), 1 - made.reward(output, REFERENCE)) for output in everything()]
    single = torch.stack([2 * (loss - 1 + greedy) * gradients(model, log)["decoder.output.bias"] for log, loss in each])
    shares = torch.stack([log.detach().exp() for log, _ in each])
    torch.testing.assert_close((shares[:, None] * single).sum(0), right, rtol=1e-3, atol=1e-5)  # no noise: the same
    spread = ((shares[:, None] * single.square()).sum(0) - right.square()).clamp_min(0).sqrt()
    error = (mine - right).abs()
    assert (error <= 4 * spread / math.sqrt(samples) + 1e-6).all()
    assert (right.abs() > 4 * spread / math.sqrt(samples)).any()  # enough draws to tell the gradient from none


def test_minimum_risk_compares_different_outputs_and_the_target_where_asked(monkeypatch):
    monkeypatch.setattr("regard.losses.sequence_risk.sample_outputs", lambda *_: [[[A, EOS], [B, EOS], [A, EOS]]])
    model, references = network(), [[B, A, EOS]]
    assert risk().outputs(model, BATCH.source, references) == [[[B, A, EOS], [A, EOS], [B, EOS]]]
    assert risk(minimum_risk_reference=False).outputs(model, BATCH.source, references) == [[[A, EOS], [B, EOS]]]
    assert risk().outputs(model, BATCH.source, [[A, EOS]]) == [[[A, EOS], [B, EOS]]]
    assert risk("self_critical").outputs(model, BATCH.source, references) == [[[A, EOS], [B, EOS], [A, EOS]]]


def test_equal_outputs_are_judged_once():
    asked = []

    class Counting(Reward):
        def __call__(self, output, reference):
            asked.append(output)
            return super().__call__(output, reference)

    made = Risk(Train(sequence_loss="self_critical"), Counting("exact", str))
    assert made.rewards([[[A], [B], [A]], [[B]]], [[A], [B]]).tolist() == [[1, 0, 1], [1, 0, 0]]
    assert len(asked) == 3


def test_the_share_mixes_the_risk_with_the_likelihood():
    model = network()
    plain = teacher_forcing_loss(model, BATCH)
    for share in (0.25, 1.0):
        torch.manual_seed(2)
        found = teacher_forcing_loss(model, BATCH, risk=risk(sequence_weight=share))
        mixed = share * found.parts["risk"] + (1 - share) * plain.total
        assert found.total.item() == pytest.approx(mixed.item(), rel=1e-6)
        assert found.parts["nll"].item() == pytest.approx(plain.total.item())
    assert 0 <= found.total.item() <= 2  # at most 1 for each token of the target


def test_batches_add_up_however_they_are_cut(monkeypatch):
    monkeypatch.setattr(
        "regard.losses.sequence_risk.sample_outputs", lambda model, source, *_: [[[A, EOS], [B, A, EOS]]] * len(source.data)
    )
    model, made = network(), risk()
    rows = [([A, B, EOS], [B, A, EOS]), ([A, EOS], [A, EOS])]
    whole = Batch(*(pad(side) for side in zip(*rows, strict=True)))
    parts = [
        teacher_forcing_loss(model, Batch(pad([source]), pad([target])), risk=made).total.item() for source, target in rows
    ]
    assert teacher_forcing_loss(model, whole, risk=made).total.item() == pytest.approx(sum(parts), rel=1e-5)


def test_it_begins_at_its_step():
    model = network()
    teacher = TeacherForcing(Train(sequence_loss="minimum_risk", sequence_start=3), model, risk())
    assert "risk" not in teacher(model, BATCH, Progress(2, 9)).parts
    assert "risk" in teacher(model, BATCH, Progress(3, 9)).parts


def test_risk_needs_targets():
    with pytest.raises(ValueError, match=r"train\.sequence_loss needs a batch with targets, and this one has only sources"):
        risk()(network(), BATCH._replace(target=None), Loss(torch.zeros(()), 2))


def test_draws_of_where_to_look_have_no_risk():
    text = "train.sequence_loss=self_critical needs a soft attention, and this model's is hard: it samples"
    with pytest.raises(ValueError, match=text):
        TeacherForcing(Train(sequence_loss="self_critical"), network(attention="additive+hard"), risk("self_critical"))


def test_a_teacher_that_is_to_go_by_a_metric_needs_one():
    with pytest.raises(
        ValueError, match=r"train\.sequence_loss=minimum_risk needs a Risk, got none; give one to TeacherForcing"
    ):
        TeacherForcing(Train(sequence_loss="minimum_risk"), network())


@pytest.mark.parametrize("kind", ["minimum_risk", "self_critical"])
@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
@pytest.mark.parametrize("attention", ["none", "transformer", "pointer", "additive+gumbel", "location_sensitive", "mocha"])
def test_every_decoder_learns_by_it_whatever_its_attention(kind, decoder, attention):
    model = network(decoder, attention)
    found = teacher_forcing_loss(model, BATCH, risk=risk(kind))
    found.total.backward()
    assert found.total.isfinite()
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    assert grads
    assert all(each.isfinite().all() for each in grads)


def settings(kind: str, **more):
    """A small run of the task `reverse` that trains on the metric."""
    usual = {
        "max_steps": 4,
        "evaluate_every": 0,
        "checkpoint_every": 2,
        "learning_rate": 0.01,
        "device": "cpu",
        "monitor": "exact",
    }
    config = find("reverse").Config(search=Search(max_length=4))
    risked = {
        "sequence_loss": kind,
        "sequence_metric": "edit",
        "sequence_samples": 3,
        "sequence_start": 1,
        "sequence_weight": 0.5,
    }
    return replace(
        config,
        data=Data(samples=100, batch_tokens=32, max_source_length=4, max_target_length=4),
        model=Model(hidden_size=16),
        train=Train(**{**usual, **risked, **more}),
    )


@pytest.mark.unhooked  # many steps, whose shapes the tests above check
@pytest.mark.parametrize(("kind", "metric"), [("minimum_risk", "chrf"), ("self_critical", "bleu")])
def test_a_run_stopped_anywhere_goes_on_without_changing_a_bit(tmp_path, kind, metric):
    train(experiment("reverse", settings(kind, sequence_metric=metric))[0], tmp_path / "whole", quiet=True)
    for last in (3, 4):
        train(experiment("reverse", settings(kind, sequence_metric=metric, max_steps=last))[0], tmp_path / "cut", quiet=True)
    assert fingerprint(tmp_path / "whole")["4"] == fingerprint(tmp_path / "cut")["4"]


@pytest.mark.unhooked
@pytest.mark.parametrize("kind", ["minimum_risk", "self_critical"])
def test_the_expected_metric_rises(kind):
    """After a little teaching, by the model's own outputs alone: the likelihood has no share in the loss."""
    config = settings(
        kind, sequence_weight=1.0, sequence_start=0, sequence_samples=8, minimum_risk_alpha=0.1, minimum_risk_reference=False
    )
    made, _ = experiment("reverse", config)
    batch = made.train.batch(0)

    def earned() -> float:
        outputs = sample_outputs(made.model, batch.source, made.loss.risk.limits(batch.source), 64)
        return made.loss.risk.rewards(outputs, made.loss.risk.references(batch)).mean().item()

    def learn(steps: int, loss) -> None:
        learner = torch.optim.Adam(made.model.parameters(), 0.02)
        for step in range(steps):
            learner.zero_grad()
            loss(made.model, batch, Progress(step, steps)).total.backward()
            learner.step()

    torch.manual_seed(0)
    learn(10, lambda model, batch, progress: teacher_forcing_loss(model, batch))
    before = earned()
    learn(12, made.loss)
    assert earned() > before + 0.03  # means of 512 draws, each known to 0.007


def test_the_risk_is_what_is_lost_by_shares_of_likelihood():
    assert minimum_risk(LOGS, REWARDS, KEEP, 1.0).tolist() == pytest.approx([1 / 3 * 0.6])  # shares 2/3 and 1/3
    even = minimum_risk(LOGS, REWARDS, KEEP, 1e-9).item()
    assert even == pytest.approx(0.3)
    shares = [0.5**0.5, 0.25**0.5]
    assert minimum_risk(LOGS, REWARDS, KEEP, 0.5).item() == pytest.approx(0.6 * shares[1] / sum(shares))


def test_the_gradient_makes_the_better_output_likelier_and_leaves_nobody_alone():
    logs = LOGS.clone().requires_grad_()
    minimum_risk(logs, REWARDS, KEEP, 1.0).sum().backward()
    slope = 2 / 3 * 1 / 3 * 0.6  # Q (Δ - risk)
    assert logs.grad[0].tolist() == pytest.approx([-slope, slope, 0.0])


def test_one_output_alone_teaches_nothing():
    logs = LOGS[:, :1].clone().requires_grad_()
    minimum_risk(logs, REWARDS[:, 1:2], KEEP[:, :1], 1.0).sum().backward()
    assert logs.grad.item() == 0.0


def test_the_figure_is_the_mean_loss_and_the_gradient_what_was_better_than_expected():
    logs = torch.tensor([[-1.0, -2.0, 7.0]], requires_grad=True)
    found = self_critical(logs, REWARDS, KEEP, torch.tensor([0.5]))
    assert found.tolist() == pytest.approx([0.3])
    found.sum().backward()
    assert logs.grad[0].tolist() == pytest.approx([-0.25, 0.05, 0.0])  # -(r - 0.5) / 2


def test_what_is_as_good_as_expected_teaches_nothing():
    logs = torch.tensor([[-1.0]], requires_grad=True)
    self_critical(logs, torch.tensor([[0.5]]), torch.tensor([[True]]), torch.tensor([0.5])).sum().backward()
    assert logs.grad.item() == 0.0
