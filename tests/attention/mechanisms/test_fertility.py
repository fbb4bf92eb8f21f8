import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.coverage import Coverage
from regard.attention.mechanisms.fertility import Fertility
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind

KEEP = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [False] * 5])


def test_a_plain_case_can_be_worked_by_hand():
    found = Fertility(1, most=4.0)
    for parameter in found.parameters():
        parameter.data.fill_(1.0)
    found.w.weight.data.fill_(-1.0)
    found.w.bias.data.fill_(0.0)
    query, source = torch.tensor([[[0.0], [0.0]]]), torch.tensor([[[0.0], [1.0]]])
    memory = found.remember(source)
    # Φ = 4 sigmoid([0, 1]) = [2, 2.924234]
    assert_close(found.fertility(memory), torch.tensor([[2.0, 2.924234]]))
    attended = found(query, memory, weights=True)
    # first e = [tanh 0, tanh 1] = [0, 0.76159]; its softmax is [0.31830, 0.68170]
    # then C = [0.15915, 0.23312], e = [tanh(-0.15915), tanh(0.76688)] = [-0.15782, 0.64511]; its softmax is [0.30940, 0.69060]
    expected = torch.tensor([[0.318300, 0.681700], [0.309399, 0.690601]])
    assert_close(attended.weights[0, 0], expected, atol=1e-5, rtol=0)
    assert_close(attended.context[0, :, 0], expected[:, 1], atol=1e-5, rtol=0)
    assert_close(attended.state[0], expected.sum(0), atol=1e-5, rtol=0)


def formula(found, query, source):
    """The paper's recurrence for one row: C_ij = C_{i-1,j} + a_ij / Φ_j."""
    W, U, v = (each.weight[0] for each in (found.score.W, found.score.U, found.score.v))
    w, b = found.w.weight[:, 0], found.w.bias
    fertile = [found.most / (1 + torch.exp(-found.U_f.weight[0] @ h)) for h in source]
    C, weights = torch.zeros(len(source)), []
    for state in query:
        energies = [v[0] @ torch.tanh(W @ state + U @ h + w * c + b) for h, c in zip(source, C, strict=True)]
        weights.append(torch.stack(energies).softmax(0))
        C = C + weights[-1] / torch.stack(fertile)
    return torch.stack(weights)


@pytest.mark.parametrize("most", [2.0, 0.5, 10.0])
def test_it_is_the_recurrence_of_the_paper(most):
    found = Fertility(3, 2, most=most)
    found.w.bias.data.normal_()
    query, source = torch.randn(1, 4, 3), torch.randn(1, 5, 2)
    attended = found(query, found.remember(source), weights=True)
    weights = formula(found, query[0], source[0])
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])
    assert_close(attended.state[0], weights.sum(0))


def test_a_fertility_of_one_for_all_is_plain_coverage():
    found, plain = Fertility(3, most=2.0), Coverage(3)
    found.U_f.weight.data.zero_()
    plain.load_state_dict({name: each for name, each in found.state_dict().items() if name != "U_f.weight"})
    query, source = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    one, other = (each(query, each.remember(source), weights=True) for each in (found, plain))
    assert_close((one.weights, one.context, one.state), (other.weights, other.context, other.state))


def test_the_more_a_word_becomes_the_less_of_it_is_covered_by_one_look():
    found = Fertility(2, most=3.0)
    memory = found.remember(torch.randn(1, 4, 2))
    state = torch.ones(1, 4)
    told = (found.add_coverage(memory, state).keys - memory.keys)[0, 0] @ found.w.weight[:, 0]
    assert told.argsort().tolist() == found.fertility(memory)[0].argsort(descending=True).tolist()
    assert ((found.fertility(memory) > 0) & (found.fertility(memory) < 3)).all()


def test_what_is_read_says_how_fertile_it_is_where_it_is_not_what_is_compared():
    found = Fertility(2, 2, 3)
    source, values = torch.randn(1, 4, 2), torch.randn(1, 4, 3)
    memory = found.remember(Encoded(source, values=values))
    assert_close(found.fertility(memory), 2 * torch.sigmoid(values @ found.U_f.weight[0]))


def test_padding_stays_uncovered_and_might_as_well_not_exist():
    found = Fertility(query=3)
    query, source = torch.randn(3, 4, 3), torch.randn(3, 5, 3)
    poisoned = source.masked_fill(~KEEP[..., None], torch.nan)
    attended = found(query, found.remember(Encoded(poisoned, KEEP)), weights=True)
    assert not attended.state[~KEEP].any()
    assert_close(attended.context[1:2], found(query[1:2], found.remember(source[1:2, :2])).context)
    assert not attended.context[2].any()


def test_the_gradient_reaches_the_fertility_through_all_looks():
    found = Fertility(query=2, key=2).double()
    query, source = torch.randn(2, 3, 2, dtype=torch.float64), torch.randn(2, 4, 2, dtype=torch.float64)

    def context(query, source):
        return found(query, found.remember(Encoded(source))).context

    assert gradcheck(context, (query.requires_grad_(), source.requires_grad_()), fast_mode=True)
    first, last = context(query, source)[:, 0].sum(), context(query, source)[:, -1].sum()
    assert torch.autograd.grad(first, found.U_f.weight, allow_unused=True, materialize_grads=True)[0].abs().sum() == 0
    assert torch.autograd.grad(last, found.U_f.weight)[0].abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_a_word_that_becomes_nothing_is_not_divided_by(dtype):
    found = Fertility(query=3).to(dtype)
    found.U_f.weight.data.fill_(-1e3)
    query, source = torch.randn(2, 4, 3).to(dtype).requires_grad_(), torch.rand(2, 5, 3).to(dtype).add(1).requires_grad_()
    memory = found.remember(source)
    assert_close(found.fertility(memory), torch.full((2, 5), 0.02, dtype=dtype))
    found(query, memory).context.float().sum().backward()
    assert query.grad.isfinite().all()
    assert source.grad.isfinite().all()


def test_it_goes_on_from_a_state():
    found = Fertility(query=3, scope="causal", normalise="sparsemax")
    query, memory = torch.randn(2, 4, 3), found.remember(torch.randn(2, 5, 3))
    together, first = found(query, memory, offset=1, weights=True), found(query[:, :2], memory, offset=1)
    second = found(query[:, 2:], memory, first.state, offset=3, weights=True)
    assert_close((second.weights, second.state), (together.weights[:, :, 2:], together.state))


@pytest.mark.parametrize("most", [0.0, -1.0, float("inf"), float("nan")])
def test_nothing_becomes_no_word_or_endless_ones(most):
    with pytest.raises(
        ValueError, match=f"Fertility needs the most words that a key may become, above 0 and finite, got {most}"
    ):
        Fertility(2, most=most)


def test_it_brings_its_own_score():
    with pytest.raises(
        ValueError, match="combines the mechanism fertility with the score dot; this mechanism brings its own"
    ):
        build_attention("fertility+dot", 4, 4)
    assert build_attention("fertility+top_k", 4, 6, size=8, dropout=0.1).U_f.weight.shape == (1, 8)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("fertility", kind)
    check_steps_and_beams("fertility", kind)
