import math

import pytest
import torch

from regard.attention.score.additive import Additive


def test_a_network_with_one_hidden_unit_can_be_worked_by_hand():
    score = Additive(query=1, key=1, hidden=1)
    score.W.weight.data.fill_(2.0)
    score.U.weight.data.fill_(4.0)
    score.v.weight.data.fill_(3.0)
    query, key = torch.tensor([[[[0.5], [0.0]]]]), torch.tensor([[[[0.25], [-0.25]]]])
    # 3 tanh(2 q + 4 k): 2·½ + 4·¼ = 2, 2·½ - 4·¼ = 0, 0 + 1 and 0 - 1
    expected = [[3 * math.tanh(2), 0.0], [3 * math.tanh(1), -3 * math.tanh(1)]]
    torch.testing.assert_close(score(query, score.prepare(key))[0, 0], torch.tensor(expected))


def test_hidden_units_are_weighed_by_v():
    score = Additive(query=2, key=2, hidden=2)
    score.W.weight.data = torch.eye(2)[None]
    score.U.weight.data = torch.eye(2)[None]
    score.v.weight.data = torch.tensor([[[1.0, -2.0]]])
    query, key = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[0.0, 1.0]]]])
    # tanh([1, 1]) = [0.7616, 0.7616], and 1 - 2 = -1
    assert score(query, score.prepare(key)).item() == pytest.approx(-math.tanh(1))


def test_query_and_key_may_differ_in_size():
    score = Additive(query=2, key=3, hidden=4)
    assert score.prepare(torch.randn(2, 1, 6, 3)).shape == (2, 1, 6, 4)
    assert score.project(torch.randn(2, 1, 5, 2)).shape == (2, 1, 5, 4)
    assert score(torch.randn(2, 1, 5, 2), torch.randn(2, 1, 6, 4)).shape == (2, 1, 5, 6)


def test_the_hidden_layer_is_as_wide_as_the_key_unless_told():
    assert Additive(query=2, key=3).v.weight.shape == (1, 1, 3)


@pytest.mark.parametrize("parameter", ["W", "U", "v"])
def test_each_head_has_parameters_of_its_own(parameter):
    score = Additive(query=2, key=3, heads=3)
    query, key = torch.randn(1, 3, 4, 2), torch.randn(1, 3, 5, 3)
    before = score(query, score.prepare(key)).detach()
    with torch.no_grad():
        getattr(score, parameter).weight[1] += 1
    changed = (score(query, score.prepare(key)) - before).abs().amax((0, 2, 3)) > 0
    assert changed.tolist() == [False, True, False]


def test_one_set_of_parameters_is_shared_by_all_heads():
    score = Additive(query=2, key=3, heads=1)
    query, key = torch.randn(1, 1, 4, 2).expand(1, 3, 4, 2), torch.randn(1, 1, 5, 3).expand(1, 3, 5, 3)
    scores = score(query, score.prepare(key))
    torch.testing.assert_close(scores[:, 0], scores[:, 2])


def test_sizes_it_was_not_made_for_are_refused():
    score = Additive(query=2, key=3)
    with pytest.raises(ValueError, match="Additive was made for key size 3, got 4; build it with key=4"):
        score.prepare(torch.zeros(1, 1, 1, 4))
    with pytest.raises(ValueError, match="Additive was made for query size 2, got 5; build it with query=5"):
        score(torch.zeros(1, 1, 1, 5), torch.zeros(1, 1, 1, 3))
