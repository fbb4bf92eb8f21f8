import math

import pytest
import torch

from regard.attention.normalise.softmax import Softmax
from regard.attention.score.additive import Additive
from regard.attention.score.concat import Concat


def test_the_pair_goes_through_one_layer():
    score = Concat(query=1, key=2, hidden=1)
    score.W.weight.data = torch.tensor([[[2.0, 1.0, -1.0]]])
    score.v.weight.data = torch.tensor([[[5.0]]])
    query, key = torch.tensor([[[[0.5]]]]), torch.tensor([[[[3.0, 2.0], [0.0, 1.0]]]])
    # W [q; k]: 2·½ + 3 - 2 = 2, and 2·½ + 0 - 1 = 0
    scores = score(query, score.prepare(key))
    torch.testing.assert_close(scores.flatten(), torch.tensor([5 * math.tanh(2), 0.0]))
    score.tanh = False
    torch.testing.assert_close(score(query, score.prepare(key)).flatten(), torch.tensor([10.0, 0.0]))


def test_the_two_halves_of_its_matrix_make_it_additive():
    score, other = Concat(query=2, key=3, hidden=4, heads=2), Additive(query=2, key=3, hidden=4, heads=2)
    other.W.weight.data, other.U.weight.data = score.W.weight.data[..., :2], score.W.weight.data[..., 2:]
    other.v.weight.data = score.v.weight.data
    query, key = torch.randn(1, 2, 5, 2), torch.randn(1, 2, 6, 3)
    torch.testing.assert_close(score(query, score.prepare(key)), other(query, other.prepare(key)))


def weights_of_two_queries(tanh: bool) -> torch.Tensor:
    score = Concat(query=3, key=3, hidden=8, tanh=tanh)
    query, key = 3 * torch.randn(1, 1, 2, 3), 3 * torch.randn(1, 1, 5, 3)
    return Softmax()(score(query, score.prepare(key)))[0, 0]


def test_without_tanh_the_query_cancels_in_the_softmax():
    first, second = weights_of_two_queries(tanh=False)
    torch.testing.assert_close(first, second)


def test_with_tanh_the_query_counts():
    first, second = weights_of_two_queries(tanh=True)
    assert (first - second).abs().max() > 0.05


@pytest.mark.parametrize("parameter", ["W", "v"])
def test_each_head_has_parameters_of_its_own(parameter):
    score = Concat(query=2, key=3, heads=3)
    query, key = torch.randn(1, 3, 4, 2), torch.randn(1, 3, 5, 3)
    before = score(query, score.prepare(key)).detach()
    with torch.no_grad():
        getattr(score, parameter).weight[1] += 1
    changed = (score(query, score.prepare(key)) - before).abs().amax((0, 2, 3)) > 0
    assert changed.tolist() == [False, True, False]


def test_one_set_of_parameters_is_shared_by_all_heads():
    score = Concat(query=2, key=3, heads=1)
    query, key = torch.randn(1, 1, 4, 2).expand(1, 3, 4, 2), torch.randn(1, 1, 5, 3).expand(1, 3, 5, 3)
    scores = score(query, score.prepare(key))
    torch.testing.assert_close(scores[:, 0], scores[:, 2])


def test_sizes_it_was_not_made_for_are_refused():
    score = Concat(query=2, key=3)
    with pytest.raises(ValueError, match="Concat was made for key size 3, got 4; build it with key=4"):
        score.prepare(torch.zeros(1, 1, 1, 4))
    with pytest.raises(ValueError, match="Concat was made for query size 2, got 5; build it with query=5"):
        score(torch.zeros(1, 1, 1, 5), torch.zeros(1, 1, 1, 3))
