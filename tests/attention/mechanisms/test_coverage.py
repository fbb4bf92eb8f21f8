import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.coverage import Coverage
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind

KEEP = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [False] * 5])


def test_a_plain_case_can_be_worked_by_hand():
    found = Coverage(1)
    for parameter in found.parameters():
        parameter.data.fill_(1.0)
    found.w.weight.data.fill_(-1.0)
    found.w.bias.data.fill_(0.0)
    query, source = torch.tensor([[[0.0], [0.0]]]), torch.tensor([[[0.0], [1.0]]])
    attended = found(query, found.remember(source), weights=True)
    # first e = [tanh 0, tanh 1] = [0, 0.76159]; its softmax is [0.31830, 0.68170], which is the coverage of the second look
    # then e = [tanh(-0.31830), tanh(1 - 0.68170)] = [-0.30797, 0.30797]; its softmax is [0.35071, 0.64929]
    expected = torch.tensor([[0.318300, 0.681700], [0.350706, 0.649294]])
    assert_close(attended.weights[0, 0], expected, atol=1e-5, rtol=0)
    assert_close(attended.context[0, :, 0], expected[:, 1], atol=1e-5, rtol=0)
    assert_close(attended.state[0], expected.sum(0), atol=1e-5, rtol=0)


def formula(found, query, source):
    """Eq. 10 and 11 for one row, number by number."""
    W, U, v = (each.weight[0] for each in (found.score.W, found.score.U, found.score.v))
    w, b = found.w.weight[:, 0], found.w.bias
    covered, weights = torch.zeros(len(source), dtype=query.dtype), []
    for state in query:
        energies = [v[0] @ torch.tanh(W @ state + U @ h + w * c + b) for h, c in zip(source, covered, strict=True)]
        weights.append(torch.stack(energies).softmax(0))
        covered = covered + weights[-1]
    return torch.stack(weights), covered


def test_it_is_the_formula_of_the_paper():
    found = Coverage(query=3, key=2)
    found.w.bias.data.normal_()
    query, source = torch.randn(1, 4, 3), torch.randn(1, 5, 2)
    attended = found(query, found.remember(source), weights=True, statistics=("received",))
    weights, covered = formula(found, query[0], source[0])
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])
    assert_close(attended.state[0], covered)
    assert_close(attended.statistics["received"][0, 0], covered)


def test_a_look_depends_on_the_looks_before():
    found = Coverage(query=3)
    query, source = torch.randn(1, 1, 3), torch.randn(1, 5, 3)
    weights = found(query.expand(-1, 3, -1), found.remember(source), weights=True).weights[0, 0]
    assert not torch.allclose(weights[0], weights[1], atol=1e-4)


def test_padding_stays_uncovered_and_might_as_well_not_exist():
    found = Coverage(query=3)
    query, source = torch.randn(3, 4, 3), torch.randn(3, 5, 3)
    poisoned = source.masked_fill(~KEEP[..., None], torch.nan)
    attended = found(query, found.remember(Encoded(poisoned, KEEP)), weights=True)
    assert not attended.state[~KEEP].any()
    assert not attended.weights[~KEEP[:, None, None].expand(-1, -1, 4, -1)].any()
    assert_close(attended.state.sum(-1), torch.tensor([4.0, 4.0, 0.0]))
    alone = found(query[1:2], found.remember(source[1:2, :2]))
    assert_close(attended.context[1:2], alone.context)
    assert_close(attended.state[1:2, :2], alone.state)
    assert not attended.context[2].any()


def test_the_gradient_goes_back_through_all_looks():
    found = Coverage(query=2, key=2).double()
    query, source = torch.randn(2, 3, 2, dtype=torch.float64), torch.randn(2, 4, 2, dtype=torch.float64)
    keep = torch.tensor([[True] * 4, [False] * 4])

    def context(query, source):
        return found(query, found.remember(Encoded(source, keep))).context

    assert gradcheck(context, (query.requires_grad_(), source.requires_grad_()), fast_mode=True)
    last = found(query, found.remember(source)).context[:, -1].sum()
    assert torch.autograd.grad(last, query)[0][:, 0].abs().sum() > 0


def test_it_goes_on_from_a_state_and_stages_are_respected():
    found = Coverage(query=3, scope="causal", normalise="sparsemax")
    query, memory = torch.randn(2, 4, 3), found.remember(torch.randn(2, 5, 3))
    together = found(query, memory, offset=1, weights=True)
    first = found(query[:, :2], memory, offset=1)
    second = found(query[:, 2:], memory, first.state, offset=3, weights=True)
    assert first.weights is None
    assert_close(second.weights, together.weights[:, :, 2:])
    assert_close(second.state, together.state)
    assert not together.weights[:, 0, 0, 2:].any()  # the first query stands at 1
    assert not found.start(memory).any()


def test_dropout_falls_on_what_is_read_and_not_on_what_is_covered():
    found = Coverage(query=3, dropout=0.5).train()
    query, memory = torch.randn(2, 4, 3), found.remember(torch.randn(2, 5, 3))
    loud, quiet = found(query, memory, weights=True), found.eval()(query, memory, weights=True)
    assert_close((loud.weights, loud.state), (quiet.weights, quiet.state))
    assert not torch.allclose(loud.context, quiet.context)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_stays_finite(dtype):
    found = Coverage(query=3).to(dtype)
    found.score.v.weight.data *= 1e4
    query, source = (100 * torch.randn(2, 4, 3)).to(dtype).requires_grad_(), (100 * torch.randn(2, 5, 3)).to(dtype)
    attended = found(query, found.remember(source))
    attended.context.float().sum().backward()
    assert all(each.isfinite().all() for each in (attended.context, attended.state, query.grad))


def test_it_brings_its_own_score():
    with pytest.raises(
        ValueError, match="combines the mechanism coverage with the score dot; this mechanism brings its own"
    ):
        build_attention("coverage+dot", 4, 4)
    assert build_attention("coverage+top_k", 4, 6, size=8, dropout=0.1).w.weight.shape == (8, 1)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("coverage", kind)
    check_steps_and_beams("coverage", kind)
