import math
import re

import pytest
import torch

from regard.attention import attend
from regard.attention.multihead import MultiHead
from regard.attention.positions.sinusoidal import encode_sinusoidal
from regard.attention.scope.causal import Causal
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.transformer_xl import TransformerXl


def test_one_wave_can_be_worked_by_hand():
    score = TransformerXl(key=1, waves=2)
    score.u.data.fill_(0.5)
    score.v.data.fill_(-0.5)
    score.W.weight.data = torch.tensor([[[2.0, 3.0]]])  # of the sine and of the cosine
    query, key = torch.ones(1, 1, 1, 1), torch.tensor([4.0, 6.0]).view(1, 1, 2, 1)
    found = score(query, score.prepare(key), offset=3)
    # 1.5 k + 0.5 (2 sin(i - j) + 3 cos(i - j)), for i = 3 and j = 0, 1
    expected = [1.5 * k + 0.5 * (2 * math.sin(far) + 3 * math.cos(far)) for k, far in ((4, 3), (6, 2))]
    torch.testing.assert_close(found.flatten(), torch.tensor(expected))


def four_terms(score, query, key, offset):
    """The paper's (a) to (d), with a vector of the distance for each pair."""
    i = torch.as_tensor(offset).expand(len(query))[:, None] + torch.arange(query.shape[2])
    R = encode_sinusoidal(i[:, :, None] - torch.arange(key.shape[2]), score.waves).to(query.dtype)
    far = torch.einsum("hdw,btsw->bhtsd", score.W.weight, R)
    a, c = query @ key.mT, score.u @ key.mT
    b, d = (torch.einsum("bhtd,bhtsd->bhts", each.expand_as(query), far) for each in (query, score.v))
    return (a + b + c + d) / query.shape[-1] ** 0.5


@pytest.mark.parametrize("waves", [None, 12])
@pytest.mark.parametrize("offset", [0, 2, torch.tensor([0, 500])], ids=str)
def test_it_is_the_sum_of_the_papers_four_terms(offset, waves):
    score = TransformerXl(key=4, heads=3, waves=waves).double()
    query, key = (torch.randn(2, 3, length, 4, dtype=torch.float64) for length in (5, 6))
    found = score(query, score.prepare(key), offset)
    torch.testing.assert_close(found, four_terms(score, query, key, offset), rtol=1e-10, atol=1e-10)
    fused = attend(query, key, key, score=score, scope=Causal(), offset=offset, impl="fused")
    reference = attend(query, key, key, score=score, scope=Causal(), offset=offset, impl="reference")
    torch.testing.assert_close(fused.context, reference.context)


def test_far_away_only_the_distance_counts():
    score = TransformerXl(key=8)
    query, key = torch.randn(1, 1, 3, 8), torch.randn(1, 1, 4, 8)
    near = score(query, score.prepare(key), 2)
    far = score(query, score.prepare(key, first=100_000), 100_002)
    torch.testing.assert_close(far, near, rtol=1e-4, atol=1e-5)


def test_without_biases_and_waves_it_is_a_scaled_dot_product():
    score = TransformerXl(key=4)
    for parameter in score.parameters():
        parameter.data.zero_()
    query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    torch.testing.assert_close(score(query, score.prepare(key), 9), ScaledDot()(query, key))


@pytest.mark.parametrize("name", ["u", "v", "W.weight"])
def test_each_head_has_parameters_of_its_own(name):
    score = TransformerXl(key=2, heads=3)
    query, key = torch.randn(1, 3, 4, 2), torch.randn(1, 3, 5, 2)
    before = score(query, score.prepare(key)).detach()
    with torch.no_grad():
        score.get_parameter(name)[1] += 1
    changed = (score(query, score.prepare(key)) - before).abs().amax((0, 2, 3)) > 0
    assert changed.tolist() == [False, True, False]


@pytest.mark.parametrize("impl", ["fused", "reference"])
@pytest.mark.parametrize("key_heads", [1, 4])
def test_a_memory_that_grows_step_by_step_equals_all_at_once(key_heads, impl):
    attention = MultiHead(16, heads=4, key_heads=key_heads, score="transformer_xl", scope="causal", impl=impl)
    data = torch.randn(2, 6, 16)
    expected, memory = attention(data, attention.remember(data)).context, None
    for t in range(6):
        memory = attention.extend(memory, data[:, t : t + 1])
        torch.testing.assert_close(attention(data[:, t : t + 1], memory).context, expected[:, t : t + 1])


def test_there_are_as_many_waves_as_a_key_has_numbers_and_an_even_number_of_them():
    assert TransformerXl(key=4).waves == 4
    assert TransformerXl(key=5).waves == 6
    assert TransformerXl(key=4, waves=10).prepare(torch.zeros(1, 1, 2, 4)).shape == (1, 1, 2, 14)


@pytest.mark.parametrize("waves", [0, 3])
def test_a_sine_without_its_cosine_is_refused(waves):
    text = f"TransformerXl needs an even number of waves, sines and cosines, 2 or more, got {waves}"
    with pytest.raises(ValueError, match=re.escape(text)):
        TransformerXl(key=4, waves=waves)


def test_sizes_it_was_not_made_for_are_refused():
    score = TransformerXl(key=2)
    with pytest.raises(ValueError, match="TransformerXl was made for key size 2, got 3; build it with key=3"):
        score.prepare(torch.zeros(1, 1, 1, 3))
    with pytest.raises(ValueError, match="TransformerXl needs queries and keys of one size, got 4 and 2"):
        score(torch.zeros(1, 1, 1, 4), score.prepare(torch.zeros(1, 1, 1, 2)))
