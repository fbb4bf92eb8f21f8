from typing import NamedTuple

from regard.decoding.streaming.search import EndPosition, find_stable_prefix


class Fed(NamedTuple):
    tokens: list[int]
    parents: list[int]


BEGIN = Fed([1], [0])
SPLIT = Fed([4, 5], [0, 0])


def test_before_the_first_token_nothing_is_agreed_on():
    assert find_stable_prefix([BEGIN]) == []
    assert find_stable_prefix([BEGIN, SPLIT]) == []


def test_one_hypothesis_agrees_with_itself():
    assert find_stable_prefix([BEGIN, Fed([4], [0]), Fed([7], [0])]) == [4, 7]


def test_hypotheses_agree_as_far_back_as_they_are_one():
    assert find_stable_prefix([BEGIN, SPLIT, Fed([6, 7], [1, 1])]) == [5]
    assert find_stable_prefix([BEGIN, SPLIT, Fed([6, 7], [1, 0])]) == []
    assert find_stable_prefix([BEGIN, SPLIT, Fed([6, 7], [1, 1]), Fed([8, 9], [0, 0])]) == [5, 6]


def test_what_has_ended_may_still_win_so_it_has_to_agree_too():
    steps = [BEGIN, SPLIT, Fed([6, 7], [1, 1]), Fed([8], [0])]
    assert find_stable_prefix(steps) == [5, 6, 8]
    assert find_stable_prefix(steps, EndPosition(step=2, row=0)) == [5, 6]
    assert find_stable_prefix(steps, EndPosition(step=2, row=1)) == [5]
    assert find_stable_prefix(steps, EndPosition(step=1, row=1)) == [5]
    assert find_stable_prefix(steps, EndPosition(step=1, row=0)) == []
    assert find_stable_prefix(steps, EndPosition(step=0, row=0)) == []
