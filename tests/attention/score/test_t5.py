import re

import pytest
import torch

from regard.attention import attend
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.t5 import T5, edges


def test_buckets_grow_with_the_distance():
    # four on a side: 0, 1, then 2 to 5, since (6/2)² is the first to reach (16/2)¹, and all that is farther
    assert edges(4, 16) == [1, 2, 6]
    score = T5(buckets=8, farthest=16)
    before, after = torch.tensor([0, -1, -2, -5, -6, -99]), torch.tensor([1, 2, 5, 6, 99])
    assert score.bucket(before).tolist() == [0, 1, 2, 2, 3, 3]
    assert score.bucket(after).tolist() == [5, 6, 6, 7, 7]


def test_with_causal_all_buckets_are_for_what_came_before():
    score = T5(buckets=4, farthest=16, causal=True)
    assert score.bucket(torch.tensor([3, 1, 0, -1, -2, -5, -6])).tolist() == [0, 0, 0, 1, 2, 2, 3]


def test_the_number_of_its_bucket_is_added_to_each_product():
    score = T5(buckets=4, farthest=2)
    score.b.data = torch.tensor([[10.0, 20.0, 0.0, 40.0]])  # here, before, never, after
    query, key = torch.tensor([[[[2.0]]]]), torch.tensor([1.0, 2.0, 3.0]).view(1, 1, 3, 1)
    assert score(query, score.prepare(key), offset=1).flatten().tolist() == [22.0, 14.0, 46.0]
    assert score(query, score.prepare(key), offset=torch.tensor([2])).flatten().tolist() == [22.0, 24.0, 16.0]


def test_the_scale_is_of_the_product_alone():
    score = T5(scale=0.5)
    query, key = torch.randn(1, 1, 3, 4), torch.randn(1, 1, 5, 4)
    torch.testing.assert_close(score(query, key) - 0.5 * query @ key.mT, score(0 * query, key))


def test_each_head_has_numbers_of_its_own_and_one_set_serves_all():
    query, key = torch.zeros(1, 3, 4, 2), torch.zeros(1, 3, 5, 2)
    own, shared = T5(heads=3), T5()
    before = own(query, key).detach()
    with torch.no_grad():
        own.b[1] += 1
    assert ((own(query, key) - before).abs().amax((0, 2, 3)) > 0).tolist() == [False, True, False]
    assert shared(query, key).shape == (1, 3, 4, 5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (32, 20), (8, 1000), (4, 7), (64, 512)])
def test_buckets_are_those_of_transformers(buckets, farthest, causal):
    from transformers.models.t5.modeling_t5 import T5Attention

    distance = torch.arange(-1500, 1500)
    settings = {"bidirectional": not causal, "num_buckets": buckets, "max_distance": farthest}
    theirs = T5Attention._relative_position_bucket(distance, **settings)
    assert torch.equal(T5(buckets=buckets, farthest=farthest, causal=causal).bucket(distance), theirs)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_it_is_that_of_transformers(causal):
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(d_model=12, num_heads=3, d_kv=4, is_decoder=causal, dropout_rate=0.0)
    config._attn_implementation = "eager"
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double().eval()
    ours = T5(heads=3, causal=causal).double()
    ours.b.data = theirs.relative_attention_bias.weight.mT.detach()
    data, scope = torch.randn(2, 40, 12, dtype=torch.float64), Causal() if causal else Everywhere()
    query, key, value = (each(data).unflatten(-1, (3, 4)).transpose(1, 2) for each in (theirs.q, theirs.k, theirs.v))
    hidden = torch.zeros(40, 40, dtype=torch.float64).masked_fill(~torch.ones(40, 40, dtype=torch.bool).tril(), -1e30)
    expected = theirs(data, mask=hidden[None, None] if causal else None)[0]
    context = attend(query, key, value, score=ours, scope=scope).context
    torch.testing.assert_close(theirs.o(context.transpose(1, 2).flatten(2)), expected)


def test_buckets_that_cannot_be_shared_out_are_refused():
    for buckets, causal in ((5, False), (2, False), (1, True)):
        text = f"T5 needs an even number of buckets, 4 or more, or 2 or more of them with causal=True, got {buckets}"
        with pytest.raises(ValueError, match=re.escape(text)):
            T5(buckets=buckets, causal=causal)
    text = "T5 needs its farthest distance above 8, up to which 32 buckets hold one distance each, got 8"
    with pytest.raises(ValueError, match=re.escape(text)):
        T5(farthest=8)


def test_a_query_and_a_key_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="T5 needs queries and keys of one size, got 3 and 2"):
        T5()(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1, 2))


@pytest.mark.parametrize("impl", ["auto", "reference"])
def test_a_bias_in_single_precision_goes_with_queries_in_half(impl):
    query, key, value = (torch.randn(1, 4, 5, 8).bfloat16().requires_grad_() for _ in range(3))
    score = T5(4)
    found = attend(query, key, value, score=score, impl=impl).context
    right = attend(query.float(), key.float(), value.float(), score=score, impl="reference").context
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), right, rtol=2e-2, atol=2e-2)
    assert all(
        each is not None for each in torch.autograd.grad(found.float().sum(), [query, key, value, *score.parameters()])
    )
