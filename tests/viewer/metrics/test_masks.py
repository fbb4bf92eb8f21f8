import numpy as np

from regard.viewer.metrics.masks import causal


def test_a_triangle_is_causal():
    assert causal(np.tri(4, dtype=bool))
    assert causal(np.stack([np.tri(3, dtype=bool)] * 2))


def test_the_last_queries_of_a_longer_text_are_causal_too():
    assert causal(np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool))


def test_anything_else_is_not():
    assert not causal(np.ones((3, 3), bool))
    assert not causal(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1]], bool))
    assert not causal(np.tri(5, 3, dtype=bool))
