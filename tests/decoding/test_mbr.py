import math

import pytest

from regard.data.special_tokens import EOS
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.mbr import normalise_scores, rank_by_utility


def found(tokens, chance, finished=True):
    score = math.log(chance)
    return Hypothesis([*tokens, EOS] if finished else tokens, score, score / (len(tokens) + 1), [score], finished)


def overlap(output, reference):
    """The share of tokens in common, of all that either has."""
    return len(set(output) & set(reference)) / len(set(output) | set(reference))


def test_the_answer_is_the_one_that_is_nearest_to_all_by_hand():
    # P = 0.4, 0.36, 0.24. Expected overlap, EOS a token like others:
    #   a      0.4 + 0.36 * 1/4 + 0.24 * 1/4 = 0.55
    #   b c    0.4 * 1/4 + 0.36 + 0.24 * 2/4 = 0.58
    #   c d    0.4 * 1/4 + 0.36 * 2/4 + 0.24 = 0.52
    few = [found([4], 0.2), found([5, 6], 0.18), found([6, 7], 0.12)]  # scaled by 2: 0.4, 0.36, 0.24
    ranked = rank_by_utility(few, overlap, sampled=False)
    assert [each.tokens[:-1] for each in ranked] == [[5, 6], [4], [6, 7]]
    values = [each.normalised for each in ranked]
    assert values == pytest.approx([0.58, 0.55, 0.52])
    assert [each.score for each in ranked] == [few[1].score, few[0].score, few[2].score], "scores stay the model's own"


def test_samples_count_as_often_as_they_come():
    few = [found([4], 0.2), found([5], 0.1), found([5], 0.1)]
    ranked = rank_by_utility(few, lambda output, reference: float(list(output) == list(reference)), sampled=True)
    assert [each.tokens[0] for each in ranked] == [5, 4]
    assert [each.normalised for each in ranked] == pytest.approx([2 / 3, 1 / 3])
    ranked = rank_by_utility(few[:2], lambda output, reference: float(list(output) == list(reference)), sampled=False)
    assert [each.normalised for each in ranked] == pytest.approx([2 / 3, 1 / 3])
    assert ranked[0].tokens[0] == 4, "exact match alone is the likeliest"


def test_what_was_cut_off_comes_last_and_of_equals_the_likelier_first():
    few = [found([4, 4], 0.5, finished=False), found([5], 0.1), found([6], 0.2)]
    assert [each.tokens[0] for each in rank_by_utility(few, lambda *_: 1.0, sampled=True)] == [6, 5, 4]


def test_probabilities_of_a_list_sum_to_one_however_small_they_are():
    assert normalise_scores([-2000.0, -2000.0 + math.log(3)]) == pytest.approx([0.25, 0.75])
