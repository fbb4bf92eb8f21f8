import re

import pytest
import torch

from regard.attention.score.location import Location


def test_each_position_has_a_row_of_the_matrix():
    score = Location(query=2, limit=3)
    score.W.weight.data = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]]])
    query = torch.tensor([[[[5.0, 7.0]]]])
    # positions 0, 1 and 2: 5, 7 and 2·5 + 3·7
    assert score(query, score.prepare(torch.zeros(1, 1, 3, 9))).flatten().tolist() == [5.0, 7.0, 31.0]
    assert score(query, score.prepare(torch.zeros(1, 1, 2, 9))).flatten().tolist() == [5.0, 7.0]


def test_what_the_keys_hold_does_not_matter():
    score = Location(query=2, limit=8)
    query = torch.randn(1, 1, 4, 2)
    one, other = torch.randn(1, 1, 5, 3), torch.randn(1, 1, 5, 3)
    assert torch.equal(score(query, score.prepare(one)), score(query, score.prepare(other)))


def test_the_query_may_be_an_embedding_beside_a_state():
    score = Location(query=5, limit=3)
    embedding, state = torch.randn(1, 1, 2, 2), torch.randn(1, 1, 2, 3)
    scores = score(torch.cat((embedding, state), dim=-1), score.prepare(torch.zeros(1, 1, 3, 3)))
    W = score.W.weight[0]
    torch.testing.assert_close(scores, embedding @ W[:, :2].mT + state @ W[:, 2:].mT)


def test_each_head_has_a_matrix_of_its_own_and_one_serves_all():
    query, key = torch.randn(1, 1, 4, 2).expand(1, 3, 4, 2), torch.zeros(1, 3, 5, 3)
    own, shared = Location(query=2, heads=3), Location(query=2, heads=1)
    before = own(query, own.prepare(key)).detach()
    with torch.no_grad():
        own.W.weight[1] += 1
    changed = (own(query, own.prepare(key)) - before).abs().amax((0, 2, 3)) > 0
    assert changed.tolist() == [False, True, False]
    scores = shared(query, shared.prepare(key))
    torch.testing.assert_close(scores[:, 0], scores[:, 2])


def test_a_source_longer_than_its_matrix_is_refused():
    text = (
        "Location was made for at most 4 keys, got 5; build it with limit=5, "
        "or use a score that looks at the keys, such as Additive"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        Location(query=2, limit=4).prepare(torch.zeros(1, 1, 5, 2))


def test_a_query_of_another_size_is_refused():
    score = Location(query=2)
    with pytest.raises(ValueError, match="Location was made for query size 2, got 3; build it with query=3"):
        score(torch.zeros(1, 1, 1, 3), score.prepare(torch.zeros(1, 1, 1, 2)))
