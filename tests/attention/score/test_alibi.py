import pytest
import torch

from regard.attention import attend
from regard.attention.scope.causal import Causal
from regard.attention.score.alibi import Alibi, compute_slopes


def test_slopes_halve_from_head_to_head():
    assert compute_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert compute_slopes(4) == [1 / 4, 1 / 16, 1 / 64, 1 / 256]
    assert compute_slopes(1) == [1 / 256]


def test_a_number_of_heads_between_powers_of_two_takes_slopes_between():
    assert compute_slopes(3) == [1 / 16, 1 / 256, 1 / 4]
    assert compute_slopes(6) == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]


def test_the_penalty_grows_with_the_distance_on_either_side():
    query, key = torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 4, 4)
    assert (256 * Alibi()(query, key, offset=1))[0, :, 0].tolist() == [[-16.0, 0.0, -16.0, -32.0], [-1.0, 0.0, -1.0, -2.0]]


def test_each_row_may_stand_elsewhere():
    query, key = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4)
    together = Alibi()(query, key, torch.tensor([0, 2]))
    for row, offset in enumerate((0, 2)):
        torch.testing.assert_close(together[row : row + 1], Alibi()(query[row : row + 1], key[row : row + 1], offset))


def test_the_scale_is_of_the_product_alone():
    query, key = torch.ones(1, 1, 1, 4), torch.ones(1, 1, 2, 4)
    torch.testing.assert_close(Alibi(scale=2.0)(query, key).flatten(), torch.tensor([8.0, 8.0 - 1 / 256]))


def test_a_far_distance_is_exact_in_half_precision_until_it_is_added():
    query, key = torch.zeros(1, 1, 1, 4, dtype=torch.bfloat16), torch.zeros(1, 1, 1000, 4, dtype=torch.bfloat16)
    found = Alibi()(query, key)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found.flatten(), (-torch.arange(1000) / 256).bfloat16())


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 12, 20])
def test_causal_weights_are_those_of_bloom(heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    query, key, value = torch.randn(3, 1, heads, 9, 4, dtype=torch.float64)
    bias = build_alibi_tensor(torch.ones(1, 9), heads, torch.float64).view(1, heads, 1, 9)
    scores = (query @ key.mT / 2 + bias).masked_fill(torch.ones(9, 9, dtype=torch.bool).triu(1), -torch.inf)
    found = attend(query, key, value, score=Alibi(), scope=Causal(), weights=True).weights
    torch.testing.assert_close(found, scores.softmax(-1), rtol=1e-6, atol=1e-6)  # theirs takes slopes in single precision


def test_a_query_and_a_key_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="Alibi needs queries and keys of one size, got 3 and 2"):
        Alibi()(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1, 2))
