import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Attended, Attention, Encoded, Memory, MultiHead
from regard.models.layers.marginal import is_marginal, list_contexts, marginalise
from regard.tree import repeat

KEEP = torch.tensor([[True, True, True], [True, False, False]])


def asked(rows=2, time=2, keep=KEEP, **options):
    """An attention with the marginal, its memory of two sources, and what queries for `rows` rows found there."""
    cross = Attention(3, 4, score="additive", normalise="marginal", **options).double()
    memory = cross.remember(Encoded(torch.randn(2, 3, 4, dtype=torch.float64), keep))
    query = torch.randn(rows, time, 3, dtype=torch.float64)
    return cross, memory, cross(query, repeat(memory, rows // 2), weights=True)


def say(context, known):
    """Something that follows from a context, position by position, and is not linear."""
    return torch.cat((context * known, context.square() - known, known.tanh()), dim=-1)


def one_by_one(memory, attended, known):
    """log Σ_k a_k p(y | v_k) for each row and position, a key at a time."""
    rows, time, _ = attended.context.shape
    found = []
    for row in range(rows):
        values = memory.values[row * len(memory.values) // rows, 0]
        for place in range(time):
            total = 0
            for key, value in enumerate(values):
                weight = attended.weights[row, 0, place, key]
                logits = say(value, known[row, place])
                total = total + weight * logits.exp() / logits.exp().sum()
            found.append(total.log())
    return torch.stack(found).view(rows, time, -1)


@pytest.mark.parametrize("rows", [2, 4, 6], ids=["alone", "two beams", "three beams"])
def test_it_equals_the_sum_over_the_keys_one_by_one(rows):
    cross, memory, attended = asked(rows)
    known = torch.randn(rows, 2, 1, dtype=torch.float64)
    found = marginalise(cross, memory, attended, say, known)
    assert_close(found, one_by_one(memory, attended, known))
    assert_close(found.exp().sum(-1), torch.ones(rows, 2, dtype=torch.float64))


def test_its_gradients_are_those_of_the_sum():
    cross, memory, attended = asked()
    known = torch.randn(2, 2, 1, dtype=torch.float64, requires_grad=True)
    learned = [known, *cross.parameters()]
    weight = torch.randn(2, 2, 9, dtype=torch.float64)
    found = torch.autograd.grad(
        (marginalise(cross, memory, attended, say, known) * weight).sum(), learned, retain_graph=True
    )
    assert_close(found, torch.autograd.grad((one_by_one(memory, attended, known) * weight).sum(), learned))


def test_gradients_equal_small_differences():
    cross, memory, attended = asked()
    inputs = [each.detach().requires_grad_() for each in (memory.values, attended.weights, torch.randn(2, 2, 1).double())]

    def run(values, weights, known):
        return marginalise(cross, memory._replace(values=values), attended._replace(weights=weights), say, known)

    hidden = (inputs[1] == 0).logical_not()  # no share of a padded key can change
    assert gradcheck(lambda values, weights, known: run(values, weights * hidden, known), inputs)


def test_a_padded_key_might_as_well_not_exist():
    cross, memory, attended = asked()
    known = torch.randn(2, 2, 1, dtype=torch.float64)
    other = memory._replace(values=memory.values.masked_fill(~KEEP[:, None, :, None], 1e6))
    found, alone = (marginalise(cross, each, attended, say, known) for each in (other, memory))
    assert_close(found, alone)
    value = memory.values[1:, 0, :1]  # the second source has one key, so nothing is mixed
    assert_close(found[1:], say(value, known[1:]).log_softmax(-1))


def test_a_query_that_sees_nothing_is_decided_by_the_context_that_it_got():
    cross, memory, attended = asked(keep=torch.tensor([[True, True, True], [False, False, False]]))
    known = torch.randn(2, 2, 1, dtype=torch.float64, requires_grad=True)
    found = marginalise(cross, memory, attended, say, known)
    assert_close(found[1], say(torch.zeros(2, 4, dtype=torch.float64), known[1]).log_softmax(-1))
    found.sum().backward()
    assert all(each.grad.isfinite().all() for each in (known, *cross.parameters()) if each.grad is not None)


def test_weights_that_do_not_sum_to_one_are_shares_of_their_sum():
    cross, memory, attended = asked()
    known = torch.randn(2, 2, 1, dtype=torch.float64)
    half = attended._replace(weights=attended.weights / 2)
    assert_close(marginalise(cross, memory, half, say, known), marginalise(cross, memory, attended, say, known))


def test_each_key_alone_is_read_as_the_attention_reads():
    cross = MultiHead(4, heads=1, normalise="marginal")
    source = torch.randn(1, 3, 4)
    memory = cross.remember(source)
    attended = cross(torch.randn(1, 2, 4), memory)
    found = list_contexts(cross, memory, attended).view(1, 2, 4, 4)  # rows time keys+1 size
    assert_close(found[:, 0, :3], cross.output(cross.value(source)))
    assert_close(found[:, 1, :3], found[:, 0, :3])
    assert_close(found[:, :, 3], attended.context)


def test_contexts_stand_key_by_key_within_each_position():
    memory = Memory(torch.zeros(1, 1, 2, 1), torch.tensor([[[[1.0], [2.0]]]]))
    attended = Attended(torch.tensor([[[3.0], [4.0]]]))
    assert list_contexts(Attention(1), memory, attended).flatten().tolist() == [1, 2, 3, 1, 2, 4]


def test_it_is_for_one_head_with_the_marginal():
    assert is_marginal(Attention(4, normalise="marginal"))
    assert is_marginal(MultiHead(4, heads=1, normalise="marginal"))
    assert not is_marginal(Attention(4))
    assert not is_marginal(None)
    with pytest.raises(
        ValueError, match=r"marginal needs an attention of one head, got 2: .* choose 1 head, or a mechanism"
    ):
        is_marginal(MultiHead(4, heads=2, normalise="marginal"))


def test_a_score_that_adds_to_what_is_read_is_refused():
    with pytest.raises(
        ValueError, match="one value at a time as it is, and Shaw adds to what is read; choose another score"
    ):
        is_marginal(Attention(4, score="shaw", normalise="marginal"))
    assert not is_marginal(Attention(4, score="shaw"))
    assert is_marginal(MultiHead(4, heads=1, sum_scores=True, normalise="marginal"))
