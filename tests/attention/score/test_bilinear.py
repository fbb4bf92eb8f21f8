import re

import pytest
import torch

from regard.attention.score.bilinear import Bilinear
from regard.attention.score.dot import Dot


def test_query_and_key_of_different_sizes_meet_in_a_matrix():
    score = Bilinear(query=2, key=3)
    score.W.weight.data = torch.tensor([[[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]])
    query, key = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[3.0, 4.0, 5.0]]]])
    prepared = score.prepare(key)
    assert prepared.flatten().tolist() == [13.0, 4.0]  # 3 + 2·5 and 4
    assert score(query, prepared).item() == 21.0  # 1·13 + 2·4


def test_the_unit_matrix_makes_it_a_dot_product():
    score = Bilinear(query=4, key=4)
    score.W.weight.data = torch.eye(4)[None]
    query, key = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 4)
    torch.testing.assert_close(score(query, score.prepare(key)), Dot()(query, key))


def test_each_head_has_a_matrix_of_its_own():
    score = Bilinear(query=2, key=3, heads=3)
    query, key = torch.randn(1, 3, 4, 2), torch.randn(1, 3, 5, 3)
    before = score(query, score.prepare(key)).detach()
    with torch.no_grad():
        score.W.weight[1] += 1
    changed = (score(query, score.prepare(key)) - before).abs().amax((0, 2, 3)) > 0
    assert changed.tolist() == [False, True, False]


def test_one_matrix_is_shared_by_all_heads():
    score = Bilinear(query=2, key=3, heads=1)
    query, key = torch.randn(1, 1, 4, 2).expand(1, 3, 4, 2), torch.randn(1, 1, 5, 3).expand(1, 3, 5, 3)
    scores = score(query, score.prepare(key))
    torch.testing.assert_close(scores[:, 0], scores[:, 2])


def test_each_head_gets_its_own_view_of_one_shared_key_head():
    score = Bilinear(query=2, key=3, heads=4)
    assert score.prepare(torch.randn(1, 1, 5, 3)).shape == (1, 4, 5, 2)


def test_sizes_it_was_not_made_for_are_refused():
    score = Bilinear(query=2, key=3)
    with pytest.raises(ValueError, match="Bilinear was made for key size 3, got 2; build it with key=2"):
        score.prepare(torch.zeros(1, 1, 1, 2))
    with pytest.raises(ValueError, match=re.escape("Bilinear was made for query size 2, got 4; build it with query=4")):
        score(torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 1, 2))


@pytest.mark.parametrize(("query", "key"), [(16, 16), (256, 256), (64, 512), (512, 64)])
def test_what_has_variance_one_begins_with_scores_of_variance_one(query, key):
    score = Bilinear(query, key)
    scores = score(torch.randn(4, 1, 20, query), score.prepare(torch.randn(4, 1, 30, key)))
    assert 0.5 < scores.std(-1).mean() < 2


def test_steady_slows_its_matrix_by_the_root_of_the_size():
    score = Bilinear(query=16, key=4)
    score.steady()
    assert score.W.pace == 0.25
