import numpy as np
import pytest

from regard.viewer.metrics.alignment import Gold, alignment_error

EYE = np.eye(3)


def test_heads_that_link_what_people_linked_have_no_error():
    weights = np.stack([EYE, EYE[::-1]])
    gold = Gold(sure=[(0, 0), (1, 1), (2, 2)])
    assert alignment_error(weights, gold).tolist() == pytest.approx([0, 1 - (1 + 1) / (3 + 3)])


def test_possible_links_cost_nothing_and_need_not_be_made():
    gold = Gold(sure=[(0, 0)], possible=[(1, 1), (1, 2)])
    assert alignment_error(EYE, gold) == pytest.approx(1 - (1 + 2) / (3 + 1))
    assert alignment_error(EYE[:2], gold) == pytest.approx(0)


def test_a_query_that_reads_nothing_makes_no_link():
    weights = np.array([[1.0, 0], [0, 0]])
    assert alignment_error(weights, Gold(sure=[(0, 0), (1, 0)])) == pytest.approx(1 - (1 + 1) / (1 + 2))


def test_gold_without_a_sure_link_is_refused():
    with pytest.raises(ValueError, match="needs at least one sure link, got none"):
        alignment_error(EYE, Gold(sure=[], possible=[(0, 0)]))


def test_a_link_outside_the_matrix_is_named():
    with pytest.raises(ValueError, match="joins query 1 and key 3, but there are 3 queries and 3 keys"):
        alignment_error(EYE, Gold(sure=[(1, 3)]))
