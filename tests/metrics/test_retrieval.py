from itertools import permutations

import numpy as np
import pytest
import torch

from regard.metrics.retrieval import compute_both_directions, compute_first_rank, compute_ranks, compute_recall, count_ties


def test_ranks_by_hand():
    scores = torch.tensor([[0.9, 0.1, 0.2], [0.8, 0.5, 0.1], [0.3, 0.2, 0.1]])
    found = compute_ranks(scores, torch.eye(3, dtype=torch.bool))
    assert found.recall[1] == pytest.approx(100 / 3)  # ranks 1, 2, 3
    assert found.recall[5] == 100
    assert found.median == 2


def test_both_ways_differ():
    scores = torch.zeros(12, 12)
    scores[0] = 1.0  # one picture draws every text
    scores += torch.eye(12) * 0.5
    ways = compute_both_directions(scores)
    assert ways.to_text.recall[1] == 100
    assert ways.to_picture.recall[1] == pytest.approx(100 / 12)
    assert ways.to_picture.median == 2


def test_a_model_that_finds_all_alike_gets_what_chance_gives():
    ways = compute_both_directions(torch.zeros(20, 20))
    assert [ways.to_text.recall[k] for k in (1, 5, 10)] == pytest.approx([5, 25, 50])
    assert ways.to_text.median == 10.5


@pytest.mark.parametrize("seed", range(6))
def test_ties_count_as_the_mean_over_all_their_orders(seed):
    draw = np.random.default_rng(seed)
    scores, right = draw.integers(0, 3, 6), np.append(draw.random(5) < 0.4, True)
    firsts = []
    for order in permutations(range(6)):
        listed = sorted(order, key=lambda each: -scores[each])  # stable: equal ones in the order of the permutation
        firsts.append(1 + next(place for place, each in enumerate(listed) if right[each]))
    found = compute_ranks(torch.tensor(scores, dtype=torch.float32)[None], torch.tensor(right)[None])
    assert found.median == pytest.approx(np.mean(firsts))
    assert found.recall[1] == pytest.approx(100 * np.mean(np.array(firsts) <= 1))
    assert found.recall[5] == pytest.approx(100 * np.mean(np.array(firsts) <= 5))


def test_with_several_right_answers_the_first_counts():
    scores = torch.tensor([[0.9, 0.8, 0.1]])
    assert compute_ranks(scores, torch.tensor([[False, True, True]])).median == 2


@pytest.mark.unhooked
def test_what_has_no_rank_is_refused():
    with pytest.raises(ValueError, match=r"of one shape, got \(2, 2\) and \(2, 3\)"):
        compute_ranks(torch.zeros(2, 2), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="one question or more, and a right answer for each"):
        compute_ranks(torch.zeros(2, 2), torch.tensor([[True, False], [False, False]]))
    with pytest.raises(ValueError, match="ranks need scores that are finite numbers"):
        compute_ranks(torch.tensor([[torch.nan]]), torch.tensor([[True]]))
    with pytest.raises(ValueError, match="2 pictures and 3 texts do not pair off; say in `right` which belong together"):
        compute_both_directions(torch.zeros(2, 3))


def test_each_question_is_counted_by_itself():
    scores, right = torch.tensor([[0.9, 0.1, 0.2], [0.8, 0.5, 0.5]]), torch.eye(3, dtype=torch.bool)[:2]
    counts = count_ties(scores, right)
    assert [each.tolist() for each in counts] == [[0, 1], [0, 1], [1, 1]]
    assert compute_first_rank(*counts).tolist() == [1.0, 2.5]  # level with one that is wrong: second or third
    assert compute_recall(*counts, 2).tolist() == [1.0, 0.5]
