import re

import pytest
import torch
from torch import nn

from regard import registry
from regard.attention import Encoded, MultiHead, attend
from regard.attention.module import zero_padding
from regard.attention.multihead import PackedProjection, is_interleaved, split_qkv
from regard.attention.normalise.entmax import Entmax
from regard.attention.scope.causal import Causal
from regard.attention.score.additive import Additive
from regard.attention.score.scaled_dot import ScaledDot


def plain(**options) -> MultiHead:
    """Two heads of size one that leave everything as it is: one looks at the first number, one at the second."""
    attention = MultiHead(2, heads=2, score="dot", bias=False, **options)
    for part in (attention.query, attention.key, attention.value):
        part.weight.data = torch.eye(2)
    return attention


def self_attended(attention: MultiHead, data: torch.Tensor, **options):
    return attention(data, attention.remember(data), **options)


def test_each_head_looks_on_its_own():
    attention = plain(output=False)
    source = torch.tensor([[[0.0, 10.0], [10.0, 0.0]]])
    context = attention(torch.tensor([[[9.0, 9.0]]]), attention.remember(source)).context
    # head 1 finds its 10 at the second key, head 2 at the first
    torch.testing.assert_close(context, torch.tensor([[[10.0, 10.0]]]))


def test_heads_are_concatenated_summed_or_averaged():
    source = torch.tensor([[[1.0, 3.0]]])  # a single key, so that each head reads its value
    found = {merge: self_attended(plain(merge=merge, output=False), source).context for merge in ("concat", "sum", "mean")}
    assert found["concat"].tolist() == [[[1.0, 3.0]]]
    assert found["sum"].tolist() == [[[4.0]]]
    assert found["mean"].tolist() == [[[2.0]]]


@pytest.mark.parametrize(("merge", "merged"), [("concat", 6), ("sum", 3), ("mean", 3)])
def test_the_output_is_projected_back_to_the_size_of_the_query_or_not(merge, merged):
    data = torch.randn(1, 5, 4)
    projected = MultiHead(4, heads=2, size=6, merge=merge)
    assert projected.size == self_attended(projected, data).context.shape[-1] == 4
    assert projected.output.weight.shape == (4, merged)
    bare = MultiHead(4, heads=2, size=6, merge=merge, output=False)
    assert bare.size == self_attended(bare, data).context.shape[-1] == merged
    assert sum(1 for _ in bare.output.parameters()) == 0


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_groups_of_query_heads_share_keys_and_values(key_heads):
    attention = MultiHead(8, heads=4, key_heads=key_heads, output=False)
    data = torch.randn(2, 5, 8)
    memory = attention.remember(data)
    assert memory.keys.shape == memory.values.shape == (2, key_heads, 5, 2)
    found = attention(data, memory, weights=True)
    for head in range(4):
        query = attention.query(data)[..., 2 * head : 2 * head + 2]
        mine = head * key_heads // 4
        weights = (query @ memory.keys[:, mine].mT / 2**0.5).softmax(-1)
        torch.testing.assert_close(found.weights[:, head], weights)
        torch.testing.assert_close(found.context[..., 2 * head : 2 * head + 2], weights @ memory.values[:, mine])


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_summed_scores_have_one_normalisation(key_heads):
    attention = MultiHead(8, heads=4, key_heads=key_heads, sum_scores=True, output=False)
    data = torch.randn(2, 5, 8)
    memory = attention.remember(data)
    found = attention(data, memory, weights=True)
    query = attention.split(attention.query(data))
    keys, values = (each.repeat_interleave(4 // key_heads, dim=1) for each in (memory.keys, memory.values))
    weights = ScaledDot()(query, keys).sum(1, keepdim=True).softmax(-1)
    assert found.weights.shape == (2, 1, 5, 5)
    torch.testing.assert_close(found.weights, weights)
    torch.testing.assert_close(found.context, attention.merge(weights @ values))


def test_summed_scores_may_learn_and_be_measured():
    attention = MultiHead(4, heads=2, score="additive", sum_scores=True, scope=Causal())
    found = self_attended(attention, torch.randn(1, 3, 4), weights=True, statistics=("entropy", "uniform"))
    assert found.weights.shape == (1, 1, 3, 3)
    assert found.statistics["entropy"].shape == (1, 1, 3)
    found.context.sum().backward()
    assert attention.score.inner.W.weight.grad.abs().max() > 0


@pytest.mark.parametrize("score", registry.names("score"))
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_any_score_works_in_each_head(score, key_heads):
    attention = MultiHead(8, 6, heads=4, key_heads=key_heads, score=score, output=False)
    query, source = torch.randn(2, 3, 8), torch.randn(2, 5, 6)
    found = attention(query, attention.remember(source)).context
    keys, values = attention.split(attention.key(source)), attention.split(attention.value(source))
    heads = attend(attention.split(attention.query(query)), keys, values, score=attention.score, impl="reference").context
    torch.testing.assert_close(found, attention.merge(heads))


@pytest.mark.parametrize("score", ["bilinear", "additive", "concat", "location"])
def test_each_head_has_parameters_of_its_own(score):
    attention = MultiHead(6, heads=3, score=score, output=False)
    data = torch.randn(1, 4, 6)
    before = self_attended(attention, data).context
    with torch.no_grad():
        attention.score.W.weight[1] = torch.randn_like(attention.score.W.weight[1])
    changed = (self_attended(attention, data).context - before).abs().unflatten(-1, (3, 2)).amax((0, 1, 3)) > 0
    assert changed.tolist() == [False, True, False]


def test_a_built_score_is_taken_as_it_is():
    shared = Additive(query=2, key=2)
    attention = MultiHead(6, heads=3, score=shared)
    assert attention.score is shared
    assert self_attended(attention, torch.randn(1, 4, 6)).context.shape == (1, 4, 6)


def test_a_normaliser_that_learns_may_do_so_for_each_head():
    attention = MultiHead(6, heads=3, normalise=Entmax(learn=True, heads=3))
    self_attended(attention, torch.randn(1, 4, 6)).context.square().sum().backward()
    assert attention.normalise.raw.grad.shape == (3,)


def test_cross_attention_may_read_from_keys_and_values_of_other_sizes():
    attention = MultiHead(8, 5, 3, heads=2)
    query, source, values = torch.randn(2, 3, 8), torch.randn(2, 6, 5), torch.randn(2, 6, 3)
    assert attention(query, attention.remember(source, values)).context.shape == (2, 3, 8)
    assert MultiHead(8, 5, heads=2).value.weight.shape == (8, 5)  # without values the source is read


@pytest.mark.parametrize("score", ["scaled_dot", "additive", "bilinear"])
@pytest.mark.parametrize("key_heads", [1, 4])
def test_a_memory_that_grows_step_by_step_equals_all_at_once(score, key_heads):
    attention = MultiHead(8, heads=4, key_heads=key_heads, score=score, scope=Causal())
    data = torch.randn(2, 6, 8)
    expected = self_attended(attention, data, weights=True)
    memory = None
    for t in range(6):
        token = data[:, t : t + 1]
        memory = attention.extend(memory, token)
        found = attention(token, memory, weights=True)
        torch.testing.assert_close(found.context, expected.context[:, t : t + 1])
        torch.testing.assert_close(found.weights, expected.weights[:, :, t : t + 1, : t + 1])
    assert memory.keep is None


def test_a_memory_grows_with_its_padding():
    attention = MultiHead(8, heads=4, scope=Causal())
    data = torch.randn(2, 6, 8)
    keep = torch.tensor([[True] * 6, [False, False, True, True, True, True]])  # the second row begins later
    expected = attention(data, attention.remember(Encoded(data, keep))).context
    memory = None
    for t in range(6):
        memory = attention.extend(memory, Encoded(data[:, t : t + 1], keep[:, t : t + 1]))
        torch.testing.assert_close(attention(data[:, t : t + 1], memory).context, expected[:, t : t + 1])
    assert torch.equal(memory.keep, keep)


def test_a_padded_prompt_may_be_followed_by_tokens_without_padding():
    attention = MultiHead(8, heads=4, scope=Causal())
    data = torch.randn(2, 5, 8)
    keep = torch.tensor([[True, True, True], [False, True, True]])
    memory = attention.extend(attention.remember(Encoded(data[:, :3], keep)), data[:, 3:])
    assert memory.keep.int().tolist() == [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    other = attention.extend(attention.remember(data[:, :2]), Encoded(data[:, 2:], keep))
    assert other.keep.int().tolist() == [[1, 1, 1, 1, 1], [1, 1, 0, 1, 1]]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [{}, {"kdim": 6, "vdim": 4}, {"kdim": 6}], ids=["one size", "three sizes", "two sizes"])
def test_the_module_of_pytorch_becomes_one_of_ours_with_equal_output(bias, sizes):
    theirs = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, **sizes)
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHead.from_torch(theirs)
    query, key, value = torch.randn(3, 5, 8), torch.randn(3, 7, theirs.kdim), torch.randn(3, 7, theirs.vdim)
    keep = torch.arange(7) < torch.tensor([7, 4, 1])[:, None]
    context, weights = theirs(query, key, value, key_padding_mask=~keep, average_attn_weights=False)
    found = ours(query, ours.remember(Encoded(key, keep), values=value), weights=True)
    torch.testing.assert_close(found.context, context)
    torch.testing.assert_close(found.weights, weights)


def test_a_module_of_pytorch_keeps_its_precision():
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    ours = MultiHead.from_torch(theirs)
    data = torch.randn(2, 5, 8, dtype=torch.float64)
    torch.testing.assert_close(self_attended(ours, data).context, theirs(data, data, data)[0], rtol=0, atol=1e-12)


def test_a_module_of_pytorch_is_copied_and_not_shared():
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.25).eval()
    ours = MultiHead.from_torch(theirs)
    assert ours.dropout == 0.25
    assert not ours.training
    with torch.no_grad():
        theirs.in_proj_weight.zero_()
    assert ours.query.weight.abs().max() > 0


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_a_module_of_pytorch_that_adds_keys_is_refused(option):
    text = "from_torch needs a module without add_bias_kv and add_zero_attn: no stage here adds keys"
    with pytest.raises(ValueError, match=re.escape(text)):
        MultiHead.from_torch(nn.MultiheadAttention(8, 2, **{option: True}))


def test_dropout_falls_only_in_training():
    attention = MultiHead(8, heads=2, dropout=0.5)
    data = torch.randn(1, 20, 8)
    assert not torch.equal(self_attended(attention, data).context, self_attended(attention, data).context)
    attention.eval()
    assert torch.equal(self_attended(attention, data).context, self_attended(attention, data).context)


@pytest.mark.parametrize(("size", "heads"), [(8, 3), (8, 0), (8, -2)])
def test_heads_that_do_not_divide_the_size_are_refused(size, heads):
    text = f"MultiHead needs a size that its heads divide, got size {size} and {heads} heads"
    with pytest.raises(ValueError, match=re.escape(text)):
        MultiHead(size, heads=heads)


@pytest.mark.parametrize("key_heads", [3, 0, 8])
def test_key_heads_that_do_not_divide_the_heads_are_refused(key_heads):
    text = f"MultiHead needs key heads that divide its heads, got {key_heads} for 4 heads"
    with pytest.raises(ValueError, match=re.escape(text)):
        MultiHead(8, heads=4, key_heads=key_heads)


@pytest.mark.unhooked
def test_an_unknown_way_to_merge_is_refused():
    with pytest.raises(ValueError, match="merge needs to be 'concat', 'sum' or 'mean', got 'max'"):
        MultiHead(8, heads=4, merge="max")


@pytest.mark.unhooked
def test_a_query_without_its_axis_of_queries_is_refused():
    attention = MultiHead(8, heads=4)
    text = "MultiHead needs a query of (batch, queries, dim), got (1, 8); one query a row is query[:, None]"
    with pytest.raises(ValueError, match=re.escape(text)):
        attention(torch.zeros(1, 8), attention.remember(torch.zeros(1, 2, 8)))


@pytest.mark.parametrize("keep", [None, torch.tensor([[True, True, False, False], [True] * 4])])
def test_self_attention_in_one_product_is_that_in_three(keep):
    heads, data = MultiHead(8, heads=2), torch.randn(2, 4, 8)
    expected, memory = heads.attend_self(Encoded(data, keep))
    torch.testing.assert_close(expected.context, heads(data, heads.remember(Encoded(data, keep))).context)
    three = heads.query, heads.key, heads.value
    heads.packed = PackedProjection(torch.cat([each.weight for each in three]), torch.cat([each.bias for each in three]), 3)
    found, packed = heads.attend_self(Encoded(data, keep))
    there = slice(None) if keep is None else keep
    torch.testing.assert_close(found.context[there], expected.context[there])
    torch.testing.assert_close(packed.keys, memory.keys)
    later = torch.randn(2, 1, 8)
    one, other = (heads.attend_self(Encoded(later), each)[0].context for each in (packed, memory))
    torch.testing.assert_close(one, other)


def test_keys_and_values_in_one_product_are_those_of_two():
    heads, source = MultiHead(8, key=6, heads=2), torch.randn(2, 4, 6)
    expected = heads.remember(source)
    two = heads.key, heads.value
    heads.packed = PackedProjection(torch.cat([each.weight for each in two]), torch.cat([each.bias for each in two]), 2)
    for mine, theirs in zip(heads.remember(source)[:2], expected[:2], strict=True):
        torch.testing.assert_close(mine, theirs)
    others = heads.remember(source, torch.randn(2, 4, 6))
    assert not torch.equal(others.values, expected.values)


def test_what_is_known_to_be_clean_is_taken_as_it_is():
    data, keep = torch.ones(1, 2, 3), torch.tensor([[True, False]])
    assert zero_padding(Encoded(data, keep, clean=True)) is data
    assert zero_padding(Encoded(data)) is data
    assert zero_padding(Encoded(data, keep)).tolist() == [[[1, 1, 1], [0, 0, 0]]]


def test_a_cache_of_packed_rows_cannot_be_extended():
    heads, numbers = MultiHead(4, heads=2), torch.ones(1, 3, dtype=torch.long)
    attended, memory = heads.attend_self(Encoded(torch.randn(1, 3, 4), documents=numbers))
    assert attended.context.shape == (1, 3, 4)
    with pytest.raises(ValueError, match="extends a memory of one example a row, got packed rows; write them whole"):
        heads.attend_self(Encoded(torch.randn(1, 1, 4)), memory)


def test_parts_of_a_product_are_its_neighbours():
    whole = torch.arange(12.0).view(1, 2, 6)
    parts = split_qkv(whole, 3)
    assert [each.flatten().tolist() for each in parts] == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]
    assert is_interleaved(parts)
    assert not is_interleaved(parts[:2])  # of rows of three
    assert not is_interleaved((parts[1], parts[0], parts[2]))
    assert not is_interleaved(tuple(each.contiguous() for each in parts))


def test_gradients_are_those_of_a_cut_wherever_they_lie():
    whole, flow = torch.randn(2, 3, 8, requires_grad=True), torch.randn(2, 3, 8)
    for given in (flow.chunk(2, -1), [each.contiguous() for each in flow.chunk(2, -1)]):
        assert torch.equal(torch.autograd.grad(split_qkv(whole, 2), whole, given)[0], flow)


def test_gradients_that_lie_side_by_side_are_not_copied():
    whole, flow = torch.randn(2, 3, 8, requires_grad=True), torch.randn(2, 3, 8)
    found = torch.autograd.grad(split_qkv(whole, 2), whole, flow.chunk(2, -1))[0]
    assert found.data_ptr() == flow.data_ptr()
