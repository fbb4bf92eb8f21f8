import numpy as np

from regard.data.special_tokens import EOS
from regard.decoding.engines.eager.beam import Candidates, extend

IMPOSSIBLE = -np.inf


def test_the_best_ways_on_come_first_and_know_their_rows():
    scores = np.array([[-1.0, -2.0], [0.0, -9.0]])  # two sentences of two rows
    values = np.array([[-0.1, -3.0], [-0.2, -0.3], [-1.0, -5.0], [-0.5, -0.6]], np.float32)
    tokens = np.array([[7, 8], [9, EOS], [5, 6], [5, 6]])
    found = extend(scores, values, tokens, beams=1)
    np.testing.assert_allclose(found.scores, [[-1.1, -2.2, -2.3], [-1.0, -5.0, -9.5]], rtol=1e-6)
    assert found.tokens.tolist() == [[7, 9, EOS], [5, 6, 5]]
    assert found.rows.tolist() == [[0, 1, 1], [2, 2, 3]]
    np.testing.assert_allclose(found.logprobs, [[-0.1, -0.2, -0.3], [-1.0, -5.0, -0.5]], rtol=1e-6)


def test_of_equals_the_leftmost_comes_first():
    found = extend(np.zeros((1, 2)), np.full((2, 3), -1.0, np.float32), np.array([[4, 5, 6], [7, 8, 9]]), beams=3)
    assert found.tokens.tolist() == [[4, 5, 6, 7, 8]]
    assert found.rows.tolist() == [[0, 0, 0, 1, 1]]


def test_the_search_goes_on_from_what_has_not_ended():
    ahead = Candidates(
        np.array([[-1.0, -2.0, -3.0, -4.0]]), np.zeros((1, 4)), np.array([[EOS, 5, EOS, 6]]), np.array([[0, 0, 1, 1]])
    )
    grown = ahead.growing(2)
    assert grown.tokens.tolist() == [[5, 6]]
    assert grown.scores.tolist() == [[-2.0, -4.0]]
    assert grown.rows.tolist() == [[0, 1]]


def test_where_too_few_go_on_the_rest_is_impossible():
    ahead = Candidates(np.array([[-1.0, -2.0]]), np.zeros((1, 2)), np.array([[EOS, 5]]), np.array([[0, 0]]))
    assert ahead.growing(2).scores.tolist() == [[-2.0, IMPOSSIBLE]]


def test_parts_of_candidates_are_candidates():
    numbers = np.arange(6).reshape(2, 3)
    ahead = Candidates(-numbers.astype(float), numbers, numbers, numbers)
    assert ahead.of(np.array([1])).tokens.tolist() == [[3, 4, 5]]
    assert ahead.of(np.array([True, False])).tokens.tolist() == [[0, 1, 2]]
    assert ahead.first(2).rows.tolist() == [[0, 1], [3, 4]]
    assert ahead.taken(np.array([[2, 0], [1, 1]])).tokens.tolist() == [[2, 0], [4, 4]]
