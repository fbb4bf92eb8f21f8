import math
from typing import ClassVar

import pytest
import torch

from regard.attention import Memory, Sampled, attend
from regard.attention.attend import align_offset, build_request, run_reference, run_request
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score.dot import Dot
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request

IMPLS = pytest.mark.parametrize("impl", ["auto", "reference", "fused"])


@IMPLS
def test_three_stages_can_be_worked_by_hand(impl):
    query = torch.tensor([[[[math.log(3), 0.0], [0.0, 0.0]]]])
    key = torch.tensor([[[[0.0, 1.0], [1.0, 0.0]]]])
    value = torch.tensor([[[[4.0], [8.0]]]])
    # scores [[0, log 3], [0, 0]] -> weights [[¼, ¾], [½, ½]] -> context [¼·4 + ¾·8, ½·4 + ½·8]
    context = attend(query, key, value, score=Dot(), impl=impl).context
    torch.testing.assert_close(context[0, 0], torch.tensor([[7.0], [6.0]]))


def test_the_weights_come_when_they_are_asked_for():
    query = torch.tensor([[[[math.log(3), 0.0]]]])
    key = torch.tensor([[[[0.0, 1.0], [1.0, 0.0]]]])
    assert attend(query, key, key, score=Dot()).weights is None
    weights = attend(query, key, key, score=Dot(), weights=True).weights
    torch.testing.assert_close(weights.flatten(), torch.tensor([0.25, 0.75]))


@IMPLS
def test_values_may_be_of_another_size_than_keys(impl):
    query, key, value = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 4), torch.randn(2, 1, 5, 7)
    context = attend(query, key, value, impl=impl).context
    torch.testing.assert_close(context, (query @ key.mT / 2).softmax(-1) @ value)


@IMPLS
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_key_head_serves_a_group_of_neighbouring_query_heads(groups, impl):
    query, key, value = torch.randn(2, 4, 3, 5), torch.randn(2, groups, 6, 5), torch.randn(2, groups, 6, 5)
    context = attend(query, key, value, impl=impl).context
    for head in range(4):
        mine = slice(head * groups // 4, head * groups // 4 + 1)
        alone = attend(query[:, head : head + 1], key[:, mine], value[:, mine], impl=impl).context
        torch.testing.assert_close(context[:, head : head + 1], alone)


@IMPLS
def test_the_offset_is_the_position_of_the_first_query(impl):
    query, key = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 4)
    whole = attend(query, key, key, scope=Causal(), impl=impl).context
    torch.testing.assert_close(attend(query, key, key, scope=Causal(), offset=2, impl=impl).context, whole)
    one = attend(query[:, :, 1:2], key, key, scope=Causal(), offset=3, impl=impl).context
    torch.testing.assert_close(one, whole[:, :, 1:2])
    each = attend(query, key, key, scope=Causal(), offset=torch.tensor([2, 2]), impl=impl).context
    torch.testing.assert_close(each, whole)


def test_dropout_falls_on_what_is_read_and_not_on_the_weights_returned():
    data = torch.randn(1, 1, 50, 4)
    value = torch.ones(1, 1, 50, 1)
    calm = attend(data, data, value, weights=True)
    dropped = attend(data, data, value, weights=True, dropout=0.5)
    torch.testing.assert_close(dropped.weights, calm.weights)
    assert not torch.allclose(dropped.context, calm.context, atol=0.01)
    assert dropped.context.mean().item() == pytest.approx(1.0, abs=0.2)


def test_dropout_of_one_reads_nothing():
    data = torch.randn(1, 1, 3, 4)
    assert attend(data, data, data, dropout=1.0, impl="reference").context.abs().max() == 0


@IMPLS
def test_statistics_come_with_every_implementation(impl):
    data = torch.zeros(1, 1, 4, 2)
    found = attend(data, data, data, statistics=("entropy", "received"), impl=impl).statistics
    torch.testing.assert_close(found["entropy"], torch.full((1, 1, 4), math.log(4)))
    torch.testing.assert_close(found["received"], torch.ones(1, 1, 4))


class Pointing:
    """Everything to the best key, drawn as a stochastic normaliser would."""

    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores, allowed):
        weights = torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)
        return weights, Sampled(scores.log_softmax(-1).amax(-1), scores.new_zeros(scores.shape[:-1]))


def test_what_a_stochastic_normaliser_drew_comes_back():
    query = torch.tensor([[[[1.0]]]])
    key = torch.tensor([[[[0.0], [math.log(3)]]]])
    attended = attend(query, key, torch.tensor([[[[5.0], [7.0]]]]), score=Dot(), normalise=Pointing(), weights=True)
    assert attended.context.item() == 7.0
    assert attended.weights.flatten().tolist() == [0.0, 1.0]
    assert attended.sampled.log_probability.item() == pytest.approx(math.log(0.75))
    assert attend(query, key, key, score=Dot()).sampled is None


def test_a_request_takes_keys_that_were_prepared_beforehand():
    score = ScaledDot()
    query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    memory = Memory(score.prepare(key), key)
    request = build_request(query, memory, score=score, normalise=Softmax(), scope=Everywhere())
    torch.testing.assert_close(run_request(request).context, attend(query, key, key).context)


def test_the_composition_is_score_then_normalise_then_combine():
    query, key, value = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 6)
    request = Request(query, key, value, ScaledDot(), Softmax(), Causal(), 0.0, 2, True, ())
    attended = run_reference(request)
    scores = (query @ key.mT / 2).masked_fill(~torch.ones(3, 5, dtype=torch.bool).tril(2), -math.inf)
    torch.testing.assert_close(attended.weights, scores.softmax(-1))
    torch.testing.assert_close(attended.context, scores.softmax(-1) @ value)


def test_lengths_that_are_known_stay_plain_numbers_when_they_are_traced(monkeypatch):
    """PyTorch 2.11 cannot trace torch.sym_max of numbers."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(torch, "sym_max", None)
    assert (align_offset(2, 5), align_offset(5, 2)) == (3, 0)


@IMPLS
def test_padding_may_hold_anything(impl):
    query, key, value = torch.randn(3, 2, 2, 6, 4, requires_grad=True)
    scope = Padding.from_lengths(torch.tensor([6, 3]), 6) & Causal()
    hidden = ~scope.left.keep[:, None, :, None]
    poisoned = [each.masked_fill(hidden, torch.nan) for each in (key, value)]
    found, right = (attend(query, *sides, scope=scope, impl=impl).context for sides in (poisoned, (key, value)))
    torch.testing.assert_close(found, right)
    gradients = (torch.autograd.grad(each.square().sum(), (query, key, value), retain_graph=True) for each in (found, right))
    for mine, exact in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, exact)


def test_padding_of_another_length_is_named():
    with pytest.raises(ValueError, match=r"Padding was made for \(2, 5\) .*, and met a batch of 2 with 6 keys"):
        attend(*torch.randn(3, 2, 1, 6, 4), scope=Padding(torch.ones(2, 5, dtype=torch.bool)))
