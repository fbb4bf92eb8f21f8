import math

import numpy as np
import pytest

from regard.data.special_tokens import EOS
from regard.decoding.engines.cuda.results import SearchResults


def figures(*steps):
    """Steps of one sentence: (probability of the whole, of the token, token, row) of each candidate."""
    made = np.array([[[*map(math.log, each[:2]), *each[2:]] for each in step] for step in steps])
    return made.transpose(0, 2, 1)[:, :, None]


TWO = figures([(0.5, 0.5, 7, 0), (0.3, 0.3, 8, 0)], [(0.4, 0.8, EOS, 0), (0.27, 0.9, 9, 1)])


def test_a_target_is_followed_back_to_its_beginning():
    results = SearchResults(np.array([2]), 1, 1, 1.0)
    results.add(TWO, np.array([[0.0], [1.0]]), np.array([0]))
    ((found,),) = results.collect()
    assert found.tokens == [7, EOS]
    assert found.finished
    assert found.score == math.log(0.4)
    assert found.normalised == math.log(0.4) / 2
    assert found.logprobs == [math.log(0.5), math.log(0.8)]


def test_those_that_are_cut_off_come_behind_those_that_finished():
    results = SearchResults(np.array([2]), 2, 2, 0.0)
    results.add(TWO, np.zeros((2, 1)), np.array([0]))
    ((first, second),) = results.collect()
    assert (first.tokens, first.finished) == ([7, EOS], True)
    assert (second.tokens, second.finished) == ([8, 9], False)


def test_what_comes_after_a_sentence_was_done_is_not_listened_to():
    results = SearchResults(np.array([9]), 1, 1, 1.0)
    early = figures([(0.5, 0.5, EOS, 0), (0.3, 0.3, 8, 0)], [(0.9, 0.9, EOS, 0), (0.1, 0.1, 8, 0)])
    results.add(early, np.array([[1.0], [1.0]]), np.array([0]))
    assert results.ends.tolist() == [1]
    assert results.collect()[0][0].tokens == [EOS]


def test_rows_belong_to_the_sentences_that_stand_first():
    results = SearchResults(np.array([1, 1]), 1, 1, 1.0)
    three = np.concatenate([TWO[:1], figures([(0.9, 0.9, 5, 0), (0.1, 0.1, 6, 0)]), TWO[:1]], axis=2)
    results.add(three, np.zeros((1, 3)), np.array([1, 0]))
    assert [each[0].tokens for each in results.collect()] == [[5], [7]]


def test_nan_is_an_error_only_while_a_sentence_grows():
    broken = TWO.copy()
    broken[1, 0, 0, 0] = float("nan")
    results = SearchResults(np.array([1]), 1, 1, 1.0)
    results.add(broken, np.zeros((2, 1)), np.array([0]))
    results = SearchResults(np.array([2]), 1, 1, 1.0)
    with pytest.raises(ValueError, match="decoding needs an output that gives some token a probability"):
        results.add(broken, np.zeros((2, 1)), np.array([0]))


def test_a_sentence_without_any_target_is_an_error():
    results = SearchResults(np.array([3]), 1, 1, 1.0)
    stuck = TWO[:1].copy()
    stuck[:, 0] = -np.inf
    results.add(stuck, np.ones((1, 1)), np.array([0]))
    with pytest.raises(ValueError, match="decoding needs a possible token at step 1"):
        results.collect()


def test_one_way_on_at_every_step_is_the_target_until_it_ended():
    steps = np.zeros((3, 4, 3, 1))
    steps[:, 0, :, 0] = [[-1.0, -1.5, -2.0], [-3.0, -2.5, -np.inf], [-4.0, -3.5, -np.inf]]
    steps[:, 1, :, 0], steps[:, 2, :, 0] = -1.0, [[5, 6, 7], [EOS, 8, 9], [9, 9, 9]]
    results = SearchResults(np.array([3, 3, 1]), 1, 1, 1.0)
    results.add(steps, np.array([[0.0, 0, 0], [1, 0, 1], [0, 0, 1]]), np.arange(3))
    (first,), (second,), (third,) = results.collect()
    assert (first.tokens, first.finished, first.score, first.normalised) == ([5, EOS], True, -3.0, -1.5)
    assert (second.tokens, second.finished, second.logprobs) == ([6, 8, 9], False, [-1.0] * 3)
    assert (third.tokens, third.finished) == ([7], False)
    lost = SearchResults(np.array([3]), 1, 1, 1.0)
    lost.add(steps[:2, :, 2:], np.array([[0.0], [1.0]]), np.array([0]))
    with pytest.raises(ValueError, match="decoding needs a possible token at step 2"):
        lost.collect()
