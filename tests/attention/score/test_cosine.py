import re

import pytest
import torch

from regard.attention.score.cosine import Cosine


def score(query: torch.Tensor, key: torch.Tensor, **options: float) -> torch.Tensor:
    cosine = Cosine(**options)
    return cosine(query[None, None], cosine.prepare(key[None, None]))[0, 0]


def test_the_angle_counts():
    query = torch.tensor([[3.0, 4.0]])
    key = torch.tensor([[4.0, 3.0], [3.0, 4.0], [-3.0, -4.0], [-4.0, 3.0]])
    # (3·4 + 4·3) / (5·5) = 0.96, the same direction, the opposite one, a right angle
    torch.testing.assert_close(score(query, key), torch.tensor([[0.96, 1.0, -1.0, 0.0]]))


def test_the_scale_is_the_strength_of_the_key():
    query, key = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])
    torch.testing.assert_close(score(query, key, scale=5.0), torch.tensor([[4.8]]))


def test_lengths_do_not_matter():
    query, key = torch.randn(3, 4), torch.randn(5, 4)
    torch.testing.assert_close(score(query * 100, key * 0.001), score(query, key))


def test_a_vector_of_zeros_fits_nothing_and_is_no_nan():
    query = torch.tensor([[0.0, 0.0], [1.0, 0.0]], requires_grad=True)
    key = torch.tensor([[0.0, 0.0], [2.0, 0.0]], requires_grad=True)
    scores = score(query, key)
    assert scores.tolist() == [[0.0, 0.0], [0.0, 1.0]]
    scores.sum().backward()
    assert query.grad.isfinite().all()
    assert key.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_long_vectors_do_not_overflow_in_half_precision(dtype):
    query, key = torch.full((1, 4), 30_000.0, dtype=dtype), torch.tensor([[30_000.0] * 4, [-1.0] * 4], dtype=dtype)
    scores = score(query, key)
    assert scores.dtype == dtype
    torch.testing.assert_close(scores, torch.tensor([[1.0, -1.0]], dtype=dtype))


def test_a_query_and_a_key_of_different_sizes_are_refused():
    text = "Cosine needs queries and keys of one size, got 3 and 2; Bilinear and Additive take different sizes"
    with pytest.raises(ValueError, match=re.escape(text)):
        score(torch.zeros(1, 3), torch.zeros(1, 2))
