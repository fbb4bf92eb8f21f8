import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.channelwise import Channelwise
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind

KEEP = torch.tensor([[True, True, True, True], [True, True, False, False], [False, False, False, False]])


def test_a_plain_case_can_be_worked_by_hand():
    made = Channelwise(query=1, key=2, hidden=1)
    made.score.W.weight.data.fill_(1.0)
    made.score.U.weight.data = torch.tensor([[[1.0, 0.0]]])
    made.score.v.weight.data = torch.tensor([[[1.0]], [[-2.0]]])
    query, source = torch.zeros(1, 1, 1), torch.tensor([[[0.0, 3.0], [1.0, 5.0]]])
    # the hidden layer is tanh 0 = 0 and tanh 1 at the two keys; channel 1 takes it once, channel 2 minus twice
    first = 1 / (1 + math.exp(-math.tanh(1)))
    second = 1 / (1 + math.exp(2 * math.tanh(1)))
    attended = made(query, made.remember(source), weights=True)
    assert_close(attended.weights[0, :, 0], torch.tensor([[1 - first, first], [1 - second, second]]))
    assert_close(attended.context, torch.tensor([[[first * 1, 3 + 2 * second]]]))


def test_it_is_the_formula_of_the_paper_number_by_number():
    made = Channelwise(query=3, key=2, value=4, hidden=5)
    query, source, values = torch.randn(1, 2, 3), torch.randn(1, 6, 2), torch.randn(1, 6, 4)
    W, U, V = made.score.W.weight[0], made.score.U.weight[0], made.score.v.weight[:, 0]
    context = torch.zeros(1, 2, 4)
    for t in range(2):
        scores = torch.stack([V @ torch.tanh(W @ query[0, t] + U @ source[0, s]) for s in range(6)])
        for c in range(4):
            context[0, t, c] = sum(scores[:, c].softmax(0)[s] * values[0, s, c] for s in range(6))
    memory = made.remember(source, values)
    assert_close(made(query, memory).context, context)
    assert made.size == 4


def test_weights_are_by_channel_and_the_context_is_what_they_read():
    made = Channelwise(query=3, key=4).eval()
    query, source = torch.randn(3, 5, 3), torch.randn(3, 4, 4)
    attended = made(query, made.remember(Encoded(source, KEEP)), weights=True, statistics=("entropy",))
    assert attended.weights.shape == (3, 4, 5, 4)
    assert_close(attended.context, torch.einsum("bcts,bsc->btc", attended.weights, source))
    assert_close(attended.weights.sum(-1), KEEP.any(-1).float()[:, None, None].expand(3, 4, 5))
    assert not attended.weights[1, :, :, 2:].any()
    assert attended.statistics["entropy"].shape == (3, 4, 5)


def test_the_hidden_layer_is_computed_once_for_all_channels():
    seen, made = [], Channelwise(query=3, key=64)
    for part in (made.score.W, made.score.U):
        part.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    made(torch.randn(2, 5, 3), made.remember(torch.randn(2, 7, 64)))
    assert seen == [(2, 1, 7, 64), (2, 1, 5, 64)]


def test_what_is_padded_reaches_nobody():
    made = Channelwise(query=3, key=4)
    query, source = torch.randn(3, 5, 3, requires_grad=True), torch.randn(3, 4, 4)
    spoiled = source.masked_fill(~KEEP[..., None], torch.nan)
    context = made(query, made.remember(Encoded(spoiled, KEEP))).context
    assert_close(context[1:2], made(query[1:2], made.remember(source[1:2, :2])).context)
    assert not context[2].any()
    context[2].sum().backward()
    assert not query.grad.any()
    assert not any(parameter.grad.any() for parameter in made.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_it_works_in_every_precision(dtype):
    made = Channelwise(query=3, key=4).to(dtype)
    context = made(torch.randn(2, 5, 3, dtype=dtype), made.remember(100 * torch.randn(2, 4, 4, dtype=dtype))).context
    assert context.dtype == dtype
    assert context.isfinite().all()
    context.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in made.parameters())


def test_a_size_projects_all_three_and_is_the_number_of_channels():
    made = build_attention("channelwise", 6, 4, size=3)
    attended = made(torch.randn(2, 5, 6), made.remember(torch.randn(2, 7, 4)), weights=True)
    assert (attended.context.shape, attended.weights.shape) == ((2, 5, 3), (2, 3, 5, 7))


def test_other_options_are_those_of_attention():
    made = build_attention("channelwise+sparsemax", 6, 4, scope="causal", dropout=0.25)
    assert (type(made), made.normalise, made.scope, made.dropout) == (Channelwise, Sparsemax(), Causal(), 0.25)
    weights = made(torch.randn(1, 4, 6), made.remember(torch.randn(1, 4, 4)), weights=True).weights
    assert not weights.triu(1).any()


def test_sizes_that_do_not_fit_are_refused():
    made = Channelwise(query=3, key=4)
    with pytest.raises(ValueError, match="Additive was made for key size 4, got 5; build it with key=5"):
        made.remember(torch.randn(1, 2, 5))


@every_kind
def test_it_works_in_every_decoder_by_its_name(kind):
    check_learning_and_padding("channelwise", kind)
    check_steps_and_beams("channelwise", kind)
