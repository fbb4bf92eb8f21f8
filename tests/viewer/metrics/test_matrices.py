import numpy as np
import pytest

from regard.data.axis import Index
from regard.viewer.metrics.matrices import MEAN, every_row, matrix, scale
from regard.viewer.trace import AttentionMap, Example, Frame

WEIGHTS = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]], np.float16)


def example(attention_map):
    return Example({"q": Index(4 if attention_map.rows else 2), "k": Index(2)}, (attention_map,))


def test_a_head_is_its_weights_and_the_mean_is_that_of_all():
    attention_map = AttentionMap("a", "q", "k", WEIGHTS)
    assert matrix(example(attention_map), attention_map, 1).tolist() == [[0, 1], [0.5, 0.5]]
    assert matrix(example(attention_map), attention_map, MEAN).tolist() == [[0.25, 0.75], [0.75, 0.25]]
    assert matrix(example(attention_map), attention_map, MEAN, np.s_[1:, :1]).tolist() == [[0.75]]


def test_queries_that_were_not_recorded_are_zero():
    attention_map = AttentionMap("a", "q", "k", WEIGHTS, rows=(1, 3))
    assert matrix(example(attention_map), attention_map, 0).tolist() == [[0, 0], [0.5, 0.5], [0, 0], [1, 0]]
    assert matrix(example(attention_map), attention_map, 0, np.s_[3:4, :]).tolist() == [[1, 0]]


def test_statistics_alone_have_no_matrix():
    attention_map = AttentionMap("a", "q", "k", None)
    with pytest.raises(
        ValueError, match=r"of a only statistics were recorded, so there is no matrix; record\(model, weights=True\)"
    ):
        matrix(example(attention_map), attention_map, 0)


def test_weights_beyond_one_have_their_largest_as_the_strongest_colour():
    assert scale(AttentionMap("a", "q", "k", WEIGHTS)) == 1
    assert scale(AttentionMap("a", "q", "k", WEIGHTS * 3, sums_to_one=False)) == 3
    assert scale(AttentionMap("a", "q", "k", WEIGHTS * 0.1, sums_to_one=False)) == 1


def test_a_film_has_the_same_scale_as_the_attention_that_it_shows():
    film = (Frame(0, None, {"a": WEIGHTS * 7, "b": WEIGHTS * 9}), Frame(1, None, {}))
    assert scale(AttentionMap("a", "q", "k", WEIGHTS * 3, sums_to_one=False), film) == 7
    assert scale(AttentionMap("a", "q", "k", WEIGHTS, sums_to_one=True), film) == 1
    assert scale(AttentionMap("a", "q", "k", None, sums_to_one=False)) == 1


def test_rows_are_laid_among_zeros_for_every_head():
    attention_map = AttentionMap("a", "q", "k", WEIGHTS, rows=(1, 3))
    assert every_row(example(attention_map), attention_map, WEIGHTS)[1].tolist() == [[0, 0], [0, 1], [0, 0], [0.5, 0.5]]
    whole = AttentionMap("a", "q", "k", WEIGHTS)
    assert every_row(example(whole), whole, WEIGHTS) is WEIGHTS
