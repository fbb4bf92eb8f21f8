import pytest
import torch
from torch.testing import assert_close

from regard.attention import Encoded, Pointer, Sparsemax
from regard.models.layers.pointer import is_pointer


def test_its_weights_are_a_distribution_over_the_places_of_the_source():
    attention = Pointer(query=3, key=2)
    state, source = torch.randn(1, 1, 3), torch.randn(1, 4, 2)
    W, U, v = (parameter.weight[0] for parameter in (attention.score.W, attention.score.U, attention.score.v))
    # u_j = vᵀ tanh(W₁ e_j + W₂ d),  p = softmax(u)
    fits = torch.stack([v[0] @ torch.tanh(W @ state[0, 0] + U @ each) for each in source[0]])
    attended = attention(state, attention.remember(source), weights=True)
    assert_close(attended.weights[0, 0, 0], fits.exp() / fits.exp().sum())


@pytest.mark.parametrize("length", [1, 5, 9])
def test_it_points_into_sources_of_any_length_and_never_at_padding(length):
    attention = Pointer(query=3)
    keep = torch.arange(9)[None] < length
    weights = attention(torch.randn(1, 2, 3), attention.remember(Encoded(torch.randn(1, 9, 3), keep)), weights=True).weights
    assert_close(weights.sum(-1), torch.ones(1, 1, 2))
    assert not weights[..., length:].any()


def test_a_plain_case_can_be_worked_by_hand():
    attention = Pointer(query=1)
    for parameter in attention.parameters():
        parameter.data.fill_(1.0)
    source = torch.tensor([[[0.0], [1.0]]])
    # u = [tanh 0, tanh 1] = [0, 0.76159], whose softmax is [0.31830, 0.68170]
    weights = attention(torch.zeros(1, 1, 1), attention.remember(source), weights=True).weights
    assert_close(weights.flatten(), torch.tensor([0.31830, 0.68170]), atol=1e-5, rtol=0)


def test_it_says_that_it_points():
    assert is_pointer(Pointer(3))
    assert Pointer(3, normalise="sparsemax").normalise == Sparsemax()


def test_weights_that_are_no_distribution_are_refused():
    with pytest.raises(
        ValueError, match=r"Pointer needs weights that sum to one, .*, got Sigmoid; use Softmax or Sparsemax"
    ):
        Pointer(3, normalise="sigmoid")
