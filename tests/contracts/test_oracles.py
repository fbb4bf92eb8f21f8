"""Others who compute the same thing agree: PyTorch's attention, its multi-head module, FlexAttention, and `entmax`."""

from functools import partial

import entmax
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, create_mask, flex_attention
from torch.testing import assert_close

from regard.attention import Causal, Encoded, Entmax, MultiHead, Padding, Softmax, Sparsemax, attend

from .stages import SCOPES

close = partial(assert_close, rtol=1e-10, atol=1e-10)


def _inputs(batch=2, heads=3, queries=5, keys=7, size=4):
    shapes = (queries, size), (keys, size), (keys, size)
    return [torch.randn(batch, heads, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def _agree(ours, theirs, learned):
    close(ours, theirs)
    direction = torch.randn_like(theirs)
    close(torch.autograd.grad(ours, learned, direction), torch.autograd.grad(theirs, learned, direction))


either = pytest.mark.parametrize("impl", ["auto", "reference"])


@either
def test_scaled_dot_and_softmax_are_pytorchs_attention(impl):
    inputs = _inputs()
    _agree(attend(*inputs, impl=impl).context, F.scaled_dot_product_attention(*inputs), inputs)


@either
def test_a_causal_scope_is_pytorchs_where_queries_and_keys_are_as_many(impl):
    inputs = _inputs(queries=7)
    theirs = F.scaled_dot_product_attention(*inputs, is_causal=True)
    _agree(attend(*inputs, scope=Causal(), impl=impl).context, theirs, inputs)


@either
@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_is_a_mask_for_pytorchs_attention(name, impl):
    inputs, scope = _inputs(), SCOPES[name](2, 7)
    mask = _allowed(scope, 2, 3, 5, 7, offset=2)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask | ~mask.any(-1, keepdim=True))
    theirs = theirs * mask.any(-1, keepdim=True)  # where nothing is seen, theirs would be the mean of all
    _agree(attend(*inputs, scope=scope, impl=impl).context, theirs, inputs)


def _allowed(scope, batch, heads, queries, keys, offset):
    allowed = scope.allowed(batch, heads, queries, keys, offset, torch.device("cpu"))
    return (torch.ones(1, dtype=torch.bool) if allowed is None else allowed).expand(batch, heads, queries, keys)


MODULES = {
    "plain": {},
    "other_sizes": {"kdim": 6, "vdim": 5},
    "no_bias": {"bias": False},
    "other_sizes_no_bias": {"kdim": 6, "vdim": 5, "bias": False},
}


@pytest.fixture(params=MODULES)
def theirs(request):
    module = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64, **MODULES[request.param])
    for name, parameter in module.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)  # PyTorch begins with zeros, which would hide a lost bias
    return module


def _sources(module, keys=5):
    sizes = (4, module.embed_dim), (keys, module.kdim), (keys, module.vdim)
    return [torch.randn(2, *size, dtype=torch.float64, requires_grad=True) for size in sizes]


def test_from_torch_gives_the_same_output_and_weights(theirs):
    ours = MultiHead.from_torch(theirs)
    query, key, value = _sources(theirs)
    attended = ours(query, ours.remember(key, value), weights=True)
    context, weights = theirs(query, key, value, average_attn_weights=False)
    close(attended.weights, weights)
    close(attended.weights.mean(1), theirs(query, key, value)[1])
    _agree(attended.context, context, [query, key, value])


def test_from_torch_gives_the_same_output_in_eval(theirs):
    theirs.eval()
    ours = MultiHead.from_torch(theirs)
    assert not ours.training
    query, key, value = _sources(theirs)
    with torch.no_grad():
        close(ours(query, ours.remember(key, value)).context, theirs(query, key, value, need_weights=False)[0])


def test_from_torch_gives_the_same_gradient_of_each_parameter(theirs):
    ours = MultiHead.from_torch(theirs)
    query, key, value = _sources(theirs)
    context, _ = theirs(query, key, value)
    direction = torch.randn_like(context)
    context.backward(direction)
    ours(query, ours.remember(key, value)).context.backward(direction)
    if theirs.in_proj_weight is not None:
        projections = theirs.in_proj_weight.grad.chunk(3)
    else:
        projections = [theirs.q_proj_weight.grad, theirs.k_proj_weight.grad, theirs.v_proj_weight.grad]
    close([part.weight.grad for part in (ours.query, ours.key, ours.value)], list(projections))
    if theirs.in_proj_bias is not None:
        close(torch.cat([part.bias.grad for part in (ours.query, ours.key, ours.value)]), theirs.in_proj_bias.grad)
    close(ours.output.weight.grad, theirs.out_proj.weight.grad)


def test_keep_is_the_opposite_of_a_key_padding_mask(theirs):
    ours = MultiHead.from_torch(theirs)
    query, key, value = _sources(theirs)
    keep = torch.tensor([[True, True, True, False, False], [True, True, True, True, True]])
    attended = ours(query, ours.remember(Encoded(key, keep), value), weights=True)
    context, weights = theirs(query, key, value, key_padding_mask=~keep, average_attn_weights=False)
    close(attended.weights, weights)
    _agree(attended.context, context, [query, key, value])


def test_a_causal_scope_is_a_causal_attention_mask(theirs):
    ours = MultiHead.from_torch(theirs)
    ours.scope = Causal()
    query, key, value = _sources(theirs, keys=4)
    mask = torch.ones(4, 4, dtype=torch.bool).triu(1)
    attended = ours(query, ours.remember(key, value), weights=True)
    context, weights = theirs(query, key, value, attn_mask=mask, average_attn_weights=False)
    close(attended.weights, weights)
    _agree(attended.context, context, [query, key, value])


@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_is_a_mask_mod_of_flex_attention(name):
    scope = SCOPES[name](2, 8)
    theirs = create_mask(scope, 2, 3, 8, 8, device="cpu")
    assert torch.equal(_allowed(scope, 2, 3, 8, 8, offset=0), theirs)


@pytest.mark.parametrize("name", SCOPES)
def test_a_block_mask_of_a_scope_names_the_blocks_that_hold_something(name):
    scope = SCOPES[name](2, 16)
    blocks = create_block_mask(scope, 2, 1, 16, 16, device="cpu", BLOCK_SIZE=4).to_dense().bool()
    expected = _allowed(scope, 2, 1, 16, 16, offset=0).unflatten(-1, (4, 4)).unflatten(-3, (4, 4)).any(-1).any(-2)
    assert torch.equal(blocks, expected)


@pytest.mark.unhooked
@pytest.mark.filterwarnings("ignore:.*flex_attention called without torch.compile:UserWarning")
@pytest.mark.parametrize("name", ["causal", "padding", "prefix_of_each_row", "causal_and_local"])
def test_flex_attention_with_our_scope_reads_the_same(name):
    scope = SCOPES[name](2, 8)
    inputs = [tensor.detach() for tensor in _inputs(queries=8, keys=8)]
    theirs = flex_attention(*inputs, block_mask=create_block_mask(scope, 2, 3, 8, 8, device="cpu"))
    close(attend(*inputs, scope=scope).context, theirs)


NORMALISERS = {
    "sparsemax": (Sparsemax(), entmax.sparsemax),
    "entmax_2": (Entmax(2.0), entmax.sparsemax),
    "entmax_1.5": (Entmax(1.5), entmax.entmax15),
    **{f"entmax_{a}": (Entmax(a), partial(entmax.entmax_bisect, alpha=a, n_iter=60)) for a in (1.05, 1.2, 1.7, 2.5)},
}


@pytest.mark.parametrize("name", NORMALISERS)
def test_sparse_shares_and_their_gradients_are_those_of_the_entmax_package(name):
    ours, theirs = NORMALISERS[name]
    scores = 2 * torch.randn(2, 3, 5, 9, dtype=torch.float64)
    scores.requires_grad_()
    found, expected = ours(scores, None), theirs(scores, dim=-1)
    assert_close(found, expected, rtol=1e-7, atol=1e-7)
    direction = torch.randn_like(scores)
    gradients = [torch.autograd.grad(shares, scores, direction)[0] for shares in (found, expected)]
    assert_close(*gradients, rtol=1e-6, atol=1e-6)


def test_a_learned_alpha_has_the_gradient_of_the_entmax_package():
    ours = Entmax(1.3, learn=True, heads=3).double()
    scores = torch.randn(2, 3, 5, 9, dtype=torch.float64, requires_grad=True)
    alpha = (1 + ours.raw.sigmoid())[:, None, None].expand(2, 3, 5, 1)
    found, expected = ours(scores, None), entmax.entmax_bisect(scores, alpha, dim=-1, n_iter=60)
    direction = torch.randn_like(scores)
    gradients = [torch.autograd.grad(shares, (scores, ours.raw), direction) for shares in (found, expected)]
    assert_close(*gradients, rtol=1e-6, atol=1e-6)


def test_entmax_near_one_is_nearly_softmax():
    scores = torch.randn(2, 3, 5, 9, dtype=torch.float64)
    assert_close(Entmax(1.0001)(scores, None), Softmax()(scores, None), rtol=1e-3, atol=1e-3)


def test_masked_scores_of_minus_infinity_are_what_the_entmax_package_is_given_for_padding():
    scores, keep = torch.randn(2, 3, 5, 9, dtype=torch.float64), torch.arange(9) < torch.tensor([[9], [4]])
    allowed = _allowed(Padding(keep), 2, 3, 5, 9, offset=0)
    for ours, theirs in NORMALISERS.values():
        assert_close(ours(scores, allowed), theirs(scores.masked_fill(~allowed, -1e9), dim=-1), rtol=1e-7, atol=1e-7)
