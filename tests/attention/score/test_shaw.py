import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard.attention import Attention, Causal, Encoded, Everywhere, MultiHead, Softmax, attend, dispatch
from regard.attention.score.relative import Relative
from regard.attention.score.shaw import Shaw
from regard.attention.types import Request
from regard.models.attention_factory import build_attention, build_self_attention

from ..mechanisms.in_models import check_learning_and_padding, check_steps_and_beams, every_kind
from .test_relative import Largest


def test_what_is_read_at_each_distance_can_be_worked_by_hand():
    score = Shaw(key=1, window=1)
    score.b.weight.data = torch.tensor([[[1.0, 2.0, 4.0]]])  # before, here, after
    weights = torch.tensor([[[[0.1, 0.2, 0.3, 0.15, 0.25]]]])
    values = torch.tensor([[[[10.0], [20.0], [30.0], [40.0], [50.0]]]])
    # at position 2: 1 + 4 + 9 + 6 + 12.5 of the values, and 0.3 · 1 + 0.3 · 2 + 0.4 · 4 of the distances
    assert_close(score.by_distance(weights, 2).flatten(), torch.tensor([0.3, 0.3, 0.4]))
    assert_close(score.combine(weights, values, 2).item(), 32.5 + 2.5)
    # at position 0: nothing stands before it, so 0.1 · 2 and 0.9 · 4
    assert_close(score.combine(weights, values, 0).item(), 32.5 + 3.8)


@pytest.mark.parametrize("offset", [0, 2, torch.tensor([0, 3])], ids=str)
def test_it_is_a_vector_added_to_the_key_and_to_the_value_of_each_pair(offset):
    score = Shaw(key=4, value=2, window=2, heads=3)
    query, key, value = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4), torch.randn(2, 3, 6, 2)
    attended = attend(query, key, value, score=score, offset=offset, weights=True)
    first = torch.as_tensor(offset).expand(2)
    for row in range(2):
        for t in range(5):
            at = [2 + max(-2, min(2, s - t - int(first[row]))) for s in range(6)]
            scores = (query[row, :, t, None] * (key[row] + score.a.weight[:, at])).sum(-1) / 2
            weights = scores.softmax(-1)
            assert_close(attended.weights[row, :, t], weights)
            read = (weights[..., None] * (value[row] + score.b.weight[..., at].mT)).sum(1)
            assert_close(attended.context[row, :, t], read)


def test_without_its_second_table_it_is_relative():
    score, plain = Shaw(key=4, heads=2), Relative(key=4, heads=2)
    score.b.weight.data.zero_()
    plain.a.weight.data.copy_(score.a.weight.data)
    inputs = torch.randn(3, 2, 2, 5, 4).unbind(0)
    found, expected = (attend(*inputs, score=each, scope=Causal(), weights=True) for each in (score, plain))
    assert_close((found.context, found.weights), (expected.context, expected.weights))


def test_no_vector_is_held_for_each_pair():
    score = Shaw(key=32, window=2)
    inputs = [torch.randn(1, 1, time, 32) for time in (40, 50, 50)]
    with Largest() as largest:
        attend(*inputs, score=score).context.sum().backward()
    assert largest.numbers == 40 * 50


def test_gradients_equal_small_differences():
    score = Shaw(key=2, value=3, window=1, heads=2).double()
    inputs = [torch.randn(1, 2, 3, size, dtype=torch.float64, requires_grad=True) for size in (2, 2, 3)]
    learned = [score.a.weight, score.b.weight]

    def context(query, key, value, a, b):
        return functional_call(Whole(score), {"score.a.weight": a, "score.b.weight": b}, (query, key, value))

    assert gradcheck(context, (*inputs, *learned))


class Whole(nn.Module):
    """attend() by a score, for what wants a module."""

    def __init__(self, score):
        super().__init__()
        self.score = score

    def forward(self, query, key, value):
        return attend(query, key, value, score=self.score, scope=Causal()).context


def test_no_kernel_covers_it_and_asking_for_one_says_so():
    score = Shaw(key=4)
    inputs = torch.randn(3, 1, 2, 5, 4).unbind(0)
    request = Request(*inputs, score, Softmax(), Everywhere(), dropout=0.0, offset=0, weights=False, statistics=())
    assert len(dispatch.KERNELS) > 2
    assert all(kernel.covers(request) for kernel in dispatch.KERNELS.values())
    with pytest.raises(ValueError, match=r"no kernel covers this request: .*got Shaw"):
        attend(*inputs, score=score, impl="fused")
    assert_close(attend(*inputs, score=score).context, attend(*inputs, score=score, impl="reference").context)


def test_dropout_falls_on_both_parts_of_what_is_read():
    heads = MultiHead(8, heads=2, score="shaw", dropout=1.0, bias=False).train()
    data = torch.randn(2, 4, 8)
    assert not heads(data, heads.remember(data)).context.any()


def test_many_far_keys_add_up_in_half_precision_too():
    score = Shaw(key=1, window=1).to(torch.bfloat16)
    weights = torch.full((1, 1, 1, 4096), 1 / 4096, dtype=torch.bfloat16)
    assert_close(score.by_distance(weights, 0).float().sum().item(), 1.0, atol=1e-3, rtol=0)


@pytest.mark.parametrize("sum_scores", [False, True])
def test_a_memory_that_grows_step_by_step_equals_all_at_once(sum_scores):
    heads = MultiHead(8, heads=4, key_heads=2, score=Shaw(2, window=2, heads=4), scope="causal", sum_scores=sum_scores)
    data = torch.randn(2, 6, 8)
    expected, memory = heads(data, heads.remember(data)).context, None
    for t in range(6):
        memory = heads.extend(memory, data[:, t : t + 1])
        assert_close(heads(data[:, t : t + 1], memory).context, expected[:, t : t + 1])


def test_heads_that_share_their_weights_still_read_by_tables_of_their_own():
    heads = MultiHead(4, heads=2, score="shaw", sum_scores=True, output=False)
    data = torch.randn(1, 3, 4)
    memory = heads.remember(data)
    found = heads(data, memory, offset=0, weights=True)
    weights = found.weights.expand(1, 2, 3, 3)
    assert_close(found.context, heads.merge(heads.score.inner.combine(weights, memory.values, 0)))


def test_padding_is_read_neither_as_a_value_nor_as_a_distance():
    made = Attention(4, score="shaw")
    query, source, keep = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.tensor([[True] * 2 + [False] * 3, [False] * 5])
    found = made(query, made.remember(Encoded(source.masked_fill(~keep[..., None], torch.nan), keep)), offset=0)
    assert_close(found.context[:1], made(query[:1], made.remember(source[:1, :2]), offset=0).context)
    assert not found.context[1].any()


def test_one_word_makes_it_for_the_sizes_at_hand():
    assert build_attention("shaw", 4, 4).score.b.weight.shape == (1, 4, 33)
    assert build_attention("shaw+sparsemax", 4, 6).score.b.weight.shape == (1, 4, 33)
    assert build_attention("transformer+shaw", 8, 6, heads=2).score.b.weight.shape == (2, 4, 33)
    assert build_self_attention("shaw", 8, 4).score.b.weight.shape == (4, 2, 33)
    assert Attention(3, 3, 5, score="shaw").score.b.weight.shape == (1, 5, 33)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("shaw", kind)
    check_steps_and_beams("shaw", kind)


def test_what_it_was_not_made_for_is_refused():
    with pytest.raises(ValueError, match="Shaw needs a window of 0 or more positions on either side, got -1"):
        Shaw(key=2, window=-1)
    with pytest.raises(ValueError, match="Shaw was made for key size 2, got 3; build it with key=3"):
        Shaw(key=2).prepare(torch.zeros(1, 1, 1, 3))
    with pytest.raises(ValueError, match="Shaw was made for value size 2, got 1; build it with value=1"):
        attend(*(torch.zeros(1, 1, 1, size) for size in (2, 2, 1)), score=Shaw(key=2))
