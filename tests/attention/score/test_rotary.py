import math
import re

import pytest
import torch

from regard.attention.multihead import MultiHead
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot

either = pytest.mark.parametrize("interleaved", [False, True])


def test_two_equal_vectors_fit_by_the_cosine_of_their_distance():
    query, key = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([1.0, 0.0]).expand(1, 1, 4, 2)
    score = Rotary(scale=1.0)
    expected = [math.cos(2), math.cos(1), 1.0, math.cos(1)]
    torch.testing.assert_close(score(query, score.prepare(key), offset=2).flatten(), torch.tensor(expected))


def test_a_pair_is_one_of_each_half_or_two_neighbours():
    vector = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 1, 4)
    (c, s), (d, t) = ((math.cos(angle), math.sin(angle)) for angle in (1, 0.01))  # base^{-2/4} = 1/100
    halves = [c - 3 * s, 2 * d - 4 * t, s + 3 * c, 2 * t + 4 * d]
    neighbours = [c - 2 * s, s + 2 * c, 3 * d - 4 * t, 3 * t + 4 * d]
    torch.testing.assert_close(Rotary().turn(vector, 1).flatten(), torch.tensor(halves))
    torch.testing.assert_close(Rotary(interleaved=True).turn(vector, 1).flatten(), torch.tensor(neighbours))


@either
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_turning_changes_no_length_and_nothing_at_position_0(size, interleaved):
    score, vectors = Rotary(interleaved=interleaved), torch.randn(2, 3, 6, size)
    turned = score.turn(vectors, 0)
    torch.testing.assert_close(turned.norm(dim=-1), vectors.norm(dim=-1))
    assert torch.equal(turned[:, :, 0], vectors[:, :, 0])
    assert torch.equal(turned[..., size - size % 2 :], vectors[..., size - size % 2 :])
    assert size == 1 or not torch.allclose(turned[:, :, 1:], vectors[:, :, 1:])


@either
def test_far_away_only_the_distance_counts(interleaved):
    score = Rotary(interleaved=interleaved)
    query, key = torch.randn(1, 1, 3, 8), torch.randn(1, 1, 4, 8)
    near, far = (score(query, score.prepare(key, first), first + 2) for first in (0, 100_000))
    torch.testing.assert_close(far, near, rtol=1e-4, atol=1e-5)


def test_each_row_may_stand_elsewhere():
    score, query, key = Rotary(), torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4)
    together = score(query, score.prepare(key), torch.tensor([0, 3]))
    for row, offset in enumerate((0, 3)):
        alone = score(query[row : row + 1], score.prepare(key[row : row + 1]), offset)
        torch.testing.assert_close(together[row : row + 1], alone)


def test_one_dimension_cannot_turn():
    query, key = torch.randn(1, 1, 3, 1), torch.randn(1, 1, 4, 1)
    torch.testing.assert_close(Rotary()(query, Rotary().prepare(key), 7), ScaledDot()(query, key))


def test_a_larger_base_turns_the_last_pair_more_slowly():
    vector = torch.tensor([0.0, 1.0, 0.0, 0.0]).view(1, 1, 1, 4)
    for base in (4.0, 10_000.0):
        assert Rotary(base=base).turn(vector, 1)[..., 3].item() == pytest.approx(math.sin(base**-0.5))


def test_half_precision_is_turned_in_single():
    vectors = torch.randn(1, 1, 300, 8).bfloat16()
    turned = Rotary().turn(vectors, 0)
    assert turned.dtype == torch.bfloat16
    assert torch.equal(turned, Rotary().turn(vectors.float(), 0).bfloat16())


@pytest.mark.parametrize("impl", ["fused", "reference"])
@pytest.mark.parametrize("key_heads", [1, 4])
def test_a_memory_that_grows_step_by_step_equals_all_at_once(key_heads, impl):
    attention = MultiHead(16, heads=4, key_heads=key_heads, score="rotary", scope="causal", impl=impl)
    data = torch.randn(2, 6, 16)
    expected, memory = attention(data, attention.remember(data)).context, None
    for t in (0, 1, 2, 4):
        step = data[:, t : t + (2 if t > 1 else 1)]
        memory = attention.extend(memory, step)
        torch.testing.assert_close(attention(step, memory).context, expected[:, t : t + step.shape[1]])


def test_halves_are_turned_as_by_llama():
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    rope = {"rope_type": "default", "rope_theta": 500.0}
    config = LlamaConfig(hidden_size=24, num_attention_heads=3, rope_parameters=rope)
    query, key = torch.randn(2, 2, 3, 7, 8)
    cos, sin = LlamaRotaryEmbedding(config)(query, 4 + torch.arange(7)[None])
    theirs = apply_rotary_pos_emb(query, key, cos, sin)
    score = Rotary(base=500.0, scale=1.0)
    torch.testing.assert_close((score.project(query, 4), score.prepare(key, 4)), theirs)


def test_neighbours_are_turned_as_by_gpt_j():
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    vectors = torch.randn(2, 3, 7, 8)
    sin, cos = create_sinusoidal_positions(20, 8)[4:11].expand(2, 7, 8).chunk(2, dim=-1)
    theirs = apply_rotary_pos_emb(vectors.transpose(1, 2), sin, cos).transpose(1, 2)
    torch.testing.assert_close(Rotary(interleaved=True).turn(vectors, 4), theirs)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=re.escape("Rotary needs a base above 0, got 0.0")):
        Rotary(base=0.0)
    with pytest.raises(ValueError, match="Rotary needs queries and keys of one size, got 3 and 2"):
        Rotary()(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1, 2))
