import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.location_sensitive import LocationSensitive
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind

KEEP = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [False] * 5])


def small(query=3, key=None, **options):
    return LocationSensitive(query, key, **{"filters": 2, "kernel": 3} | options)


def test_a_plain_case_can_be_worked_by_hand():
    found = small(1, filters=1)
    for parameter in found.parameters():
        parameter.data.fill_(1.0)
    found.V.bias.data.fill_(0.0)
    found.F.weight.data.copy_(torch.tensor([[[2.0, 0.0, 0.0]]]))  # each key is told twice what its left neighbour got
    query, source = torch.zeros(1, 2, 1), torch.tensor([[[0.0], [1.0], [0.0]]])
    weights = found(query, found.remember(source), weights=True).weights[0, 0]
    # first e = [0, tanh 1, 0] = [0, 0.76159, 0]; its softmax is [0.24145, 0.51711, 0.24145]
    # then f = [0, 0.48289, 1.03421] and e = [tanh 0, tanh 1.48289, tanh 1.03421] = [0, 0.90201, 0.77559]
    expected = torch.tensor([[0.241447, 0.517105, 0.241447], [0.177417, 0.437254, 0.385329]])
    assert_close(weights, expected, atol=1e-5, rtol=0)


def formula(found, query, source):
    """e_ij = vᵀ tanh(W s + U h_j + V f_ij + b) for one row, the convolution written as a sum over its window."""
    W, U, v = (each.weight[0] for each in (found.score.W, found.score.U, found.score.v))
    reach = found.F.kernel_size[0] // 2
    told, weights = torch.zeros(len(source)), []
    for state in query:
        energies = []
        for j, h in enumerate(source):
            near = [(told[j + r] if 0 <= j + r < len(source) else 0.0) for r in range(-reach, reach + 1)]
            f = sum(part * taken for part, taken in zip(found.F.weight[:, 0].unbind(1), near, strict=True))
            energies.append(v[0] @ torch.tanh(W @ state + U @ h + found.V.weight @ f + found.V.bias))
        weights.append(torch.stack(energies).softmax(0))
        told = told + weights[-1] if found.cumulative else weights[-1]
    return torch.stack(weights), told


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize("kernel", [1, 5, 31])
def test_it_is_the_formula_of_the_paper(cumulative, kernel):
    found = small(3, 2, kernel=kernel, cumulative=cumulative)
    found.V.bias.data.normal_()
    query, source = torch.randn(1, 4, 3), torch.randn(1, 5, 2)
    attended = found(query, found.remember(source), weights=True, statistics=("received",))
    weights, told = formula(found, query[0], source[0])
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])
    assert_close(attended.state[0], told)
    assert_close(attended.statistics["received"][0, 0], weights.sum(0))


def test_padding_is_never_looked_at_and_might_as_well_not_exist():
    found = small()
    query, source = torch.randn(3, 4, 3), torch.randn(3, 5, 3)
    poisoned = source.masked_fill(~KEEP[..., None], torch.nan)
    attended = found(query, found.remember(Encoded(poisoned, KEEP)), weights=True)
    assert not attended.state[~KEEP].any()
    assert_close(attended.state.sum(-1), torch.tensor([1.0, 1.0, 0.0]))
    alone = found(query[1:2], found.remember(source[1:2, :2]), weights=True)
    assert_close(attended.context[1:2], alone.context)
    assert_close(attended.weights[1:2, ..., :2], alone.weights)
    assert not attended.context[2].any()
    assert not attended.weights[2].any()


def test_the_gradient_goes_back_through_all_looks():
    found = small(2).double()
    query, source = torch.randn(2, 3, 2, dtype=torch.float64), torch.randn(2, 4, 2, dtype=torch.float64)
    keep = torch.tensor([[True] * 4, [False] * 4])

    def context(query, source):
        return found(query, found.remember(Encoded(source, keep))).context

    assert gradcheck(context, (query.requires_grad_(), source.requires_grad_()), fast_mode=True)
    last = found(query, found.remember(source)).context[:, -1].sum()
    assert torch.autograd.grad(last, query)[0][:, 0].abs().sum() > 0


def test_it_goes_on_from_a_state_and_stages_are_respected():
    found = small(scope="causal", normalise="sparsemax")
    query, memory = torch.randn(2, 4, 3), found.remember(torch.randn(2, 5, 3))
    together = found(query, memory, offset=1, weights=True)
    first = found(query[:, :2], memory, offset=1)
    second = found(query[:, 2:], memory, first.state, offset=3, weights=True)
    assert first.weights is None
    assert_close(second.weights, together.weights[:, :, 2:])
    assert_close(second.state, together.state)
    assert not together.weights[:, 0, 0, 2:].any()  # the first query stands at 1
    assert not found.start(memory).any()


def test_dropout_falls_on_what_is_read_and_not_on_what_is_remembered():
    found = small(dropout=0.5).train()
    query, memory = torch.randn(2, 4, 3), found.remember(torch.randn(2, 5, 3))
    loud, quiet = found(query, memory, weights=True), found.eval()(query, memory, weights=True)
    assert_close((loud.weights, loud.state), (quiet.weights, quiet.state))
    assert not torch.allclose(loud.context, quiet.context)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_stays_finite(dtype):
    found = small().to(dtype)
    found.score.v.weight.data *= 1e4
    query, source = (100 * torch.randn(2, 4, 3)).to(dtype).requires_grad_(), (100 * torch.randn(2, 5, 3)).to(dtype)
    attended = found(query, found.remember(source))
    attended.context.float().sum().backward()
    assert all(each.isfinite().all() for each in (attended.context, attended.state, query.grad))


@pytest.mark.parametrize("kernel", [0, 4])
def test_a_kernel_without_a_middle_is_refused(kernel):
    with pytest.raises(ValueError, match=f"LocationSensitive needs an odd kernel, which has a middle, got {kernel}"):
        small(kernel=kernel)


def test_it_brings_its_own_score():
    with pytest.raises(
        ValueError, match="combines the mechanism location_sensitive with the score dot; this mechanism brings"
    ):
        build_attention("location_sensitive+dot", 4, 4)
    assert build_attention("location_sensitive+top_k", 4, 6, size=8, dropout=0.1).V.weight.shape == (8, 32)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("location_sensitive", kind)
    check_steps_and_beams("location_sensitive", kind)
