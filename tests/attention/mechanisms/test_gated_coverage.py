import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.gated_coverage import GatedCoverage
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind

KEEP = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [False] * 5])


def test_a_plain_case_can_be_worked_by_hand():
    found = GatedCoverage(1, notes=1)
    for parameter in found.parameters():
        nn.init.constant_(parameter, 0.0)
    for each in (found.score.W, found.score.U, found.score.v):
        each.weight.data.fill_(1.0)
    found.V.weight.data.fill_(-1.0)
    found.share.weight.data[2] = 2.0  # the new note is tanh(2 a); both gates stay at 1/2
    query, source = torch.tensor([[[0.0], [0.0]]]), torch.tensor([[[0.0], [1.0]]])
    attended = found(query, found.remember(source), weights=True)
    # first e = [tanh 0, tanh 1] = [0, 0.76159]; its softmax is [0.31830, 0.68170]
    # C = tanh([0.63660, 1.36340]) / 2 = [0.28129, 0.43859]; e = [tanh(-0.28129), tanh(0.56141)] = [-0.27410, 0.50902]
    # its softmax is [0.31365, 0.68635]; C = [0.28129, 0.43859] / 2 + tanh([0.62729, 1.37271]) / 2 = [0.41874, 0.65895]
    expected = torch.tensor([[0.318300, 0.681700], [0.313647, 0.686353]])
    assert_close(attended.weights[0, 0], expected, atol=1e-5, rtol=0)
    assert_close(attended.context[0, :, 0], expected[:, 1], atol=1e-5, rtol=0)
    assert_close(attended.state[0, :, 0], torch.tensor([0.418738, 0.658948]), atol=1e-5, rtol=0)


def formula(found, query, source):
    """The equations for one row, key by key, each gate from its own rows of the matrices."""
    W, U, v = (each.weight[0] for each in (found.score.W, found.score.U, found.score.v))
    heard = [
        torch.cat((s, h, t), dim=1) for s, h, t in zip(*map(thirds, (found.share, found.source, found.asked)), strict=True)
    ]
    (b_z, b_r, b_c), (R_z, R_r), R_c = found.source.bias.chunk(3), found.gates.weight.chunk(2), found.again.weight
    C, weights = [torch.zeros(found.notes) for _ in source], []
    for state in query:
        energies = [v[0] @ torch.tanh(W @ state + U @ h + found.V(c)) for h, c in zip(source, C, strict=True)]
        weights.append(torch.stack(energies).softmax(0))
        for j, (h, a) in enumerate(zip(source, weights[-1], strict=True)):
            x = torch.cat((a[None], h, state))
            z = torch.sigmoid(heard[0] @ x + b_z + R_z @ C[j])
            r = torch.sigmoid(heard[1] @ x + b_r + R_r @ C[j])
            C[j] = (1 - z) * C[j] + z * torch.tanh(heard[2] @ x + b_c + R_c @ (r * C[j]))
    return torch.stack(weights), torch.stack(C)


def thirds(linear):
    return linear.weight.chunk(3)


@pytest.mark.parametrize("notes", [1, 3, 10])
def test_it_is_the_formula(notes):
    found = GatedCoverage(3, 2, notes=notes)
    found.V.bias.data.normal_()
    query, source = torch.randn(1, 4, 3), torch.randn(1, 5, 2)
    attended = found(query, found.remember(source), weights=True)
    weights, C = formula(found, query[0], source[0])
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])
    assert_close(attended.state[0], C)


def test_a_gate_that_stays_shut_notes_nothing_and_this_is_then_plain_additive_attention():
    found = GatedCoverage(3)
    found.source.bias.data[: found.notes] = -200.0
    query, source = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    memory = found.remember(source)
    attended = found(query, memory, weights=True)
    assert not attended.state.any()
    alone = torch.cat([found(query[:, t : t + 1], memory, weights=True).weights for t in range(4)], dim=2)
    assert_close(attended.weights, alone)


def test_notes_stay_between_minus_one_and_one_and_tell_keys_apart():
    found = GatedCoverage(3)
    attended = found(torch.randn(2, 50, 3), found.remember(3 * torch.randn(2, 5, 3)))
    assert (attended.state.abs() < 1).all()
    assert (attended.state[:, 0] - attended.state[:, 1]).abs().amax() > 0.05


def test_padding_might_as_well_not_exist():
    found = GatedCoverage(query=3)
    query, source = torch.randn(3, 4, 3), torch.randn(3, 5, 3)
    poisoned = source.masked_fill(~KEEP[..., None], torch.nan)
    attended = found(query, found.remember(Encoded(poisoned, KEEP)), weights=True)
    alone = found(query[1:2], found.remember(source[1:2, :2]))
    assert attended.state.isfinite().all()
    assert_close((attended.context[1:2], attended.state[1:2, :2]), (alone.context, alone.state))
    assert not attended.context[2].any()


def test_the_gradient_goes_back_through_all_looks():
    found = GatedCoverage(query=2, key=2, notes=2).double()
    query, source = torch.randn(2, 3, 2, dtype=torch.float64), torch.randn(2, 4, 2, dtype=torch.float64)
    keep = torch.tensor([[True] * 4, [False] * 4])

    def context(query, source):
        return found(query, found.remember(Encoded(source, keep))).context

    assert gradcheck(context, (query.requires_grad_(), source.requires_grad_()), fast_mode=True)
    last = found(query, found.remember(source)).context[:, -1].sum()
    assert torch.autograd.grad(last, query)[0][:, 0].abs().sum() > 0


def test_it_goes_on_from_a_state():
    found = GatedCoverage(query=3, scope="causal", normalise="sparsemax")
    query, memory = torch.randn(2, 4, 3), found.remember(torch.randn(2, 5, 3))
    together, first = found(query, memory, offset=1, weights=True), found(query[:, :2], memory, offset=1)
    second = found(query[:, 2:], memory, first.state, offset=3, weights=True)
    assert_close((second.weights, second.state), (together.weights[:, :, 2:], together.state))
    assert not found.start(memory).any()


def test_dropout_falls_on_what_is_read_and_not_on_what_is_noted():
    found = GatedCoverage(query=3, dropout=0.5).train()
    query, memory = torch.randn(2, 4, 3), found.remember(torch.randn(2, 5, 3))
    loud, quiet = found(query, memory, weights=True), found.eval()(query, memory, weights=True)
    assert_close((loud.weights, loud.state), (quiet.weights, quiet.state))
    assert not torch.allclose(loud.context, quiet.context)


def test_something_must_be_noted():
    with pytest.raises(ValueError, match="GatedCoverage needs 1 or more notes about each key, got 0"):
        GatedCoverage(2, notes=0)


def test_it_brings_its_own_score():
    with pytest.raises(
        ValueError, match="combines the mechanism gated_coverage with the score dot; this mechanism brings its own"
    ):
        build_attention("gated_coverage+dot", 4, 4)
    assert build_attention("gated_coverage+top_k", 4, 6, size=8, dropout=0.1).V.weight.shape == (8, 10)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("gated_coverage", kind)
    check_steps_and_beams("gated_coverage", kind)
