import time
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.detect.assignment import assign, assign_all

TABLES = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans())


def cheapest(cost):
    """By trying everything."""
    rows, columns = cost.shape
    if rows > columns:
        return cheapest(cost.T)
    return min(sum(cost[row, column] for row, column in enumerate(each)) for each in permutations(range(columns), rows))


def drawn(rows, columns, seed, whole):
    draw = np.random.default_rng(seed)
    return draw.integers(-3, 4, (rows, columns)).astype(float) if whole else draw.normal(size=(rows, columns))


def test_a_table_by_hand():
    cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    pairs = assign(cost)
    assert pairs.rows.tolist() == [0, 1, 2]
    assert pairs.columns.tolist() == [1, 0, 2]  # 1 + 2 + 2


def test_fewer_columns_than_rows_leave_rows_without():
    pairs = assign(np.array([[5.0], [1.0], [3.0]]))
    assert (pairs.rows.tolist(), pairs.columns.tolist()) == ([1], [0])


@given(TABLES)
def test_nothing_is_cheaper_than_what_it_finds(table):
    cost = drawn(*table)
    rows, columns = assign(cost)
    assert len(rows) == min(cost.shape)
    assert len(set(rows.tolist())) == len(set(columns.tolist())) == len(rows)
    assert cost[rows, columns].sum() == pytest.approx(cheapest(cost))


@given(TABLES, st.floats(-5, 5))
def test_what_is_added_to_a_whole_row_changes_no_pair(table, more):
    cost = drawn(*table[:3], False)
    cost = cost if cost.shape[0] <= cost.shape[1] else cost.T
    dearer = cost.copy()
    dearer[0] += more
    assert assign(dearer).columns.tolist() == assign(cost).columns.tolist()


def test_many_tables_at_once_are_each_for_itself():
    draw = np.random.default_rng(3)
    costs, counts = draw.normal(size=(40, 7, 9)), draw.integers(0, 8, 40)
    found = assign_all(costs, counts)
    for cost, count, columns in zip(costs, counts, found, strict=True):
        assert columns[:count].tolist() == (assign(cost[:count]).columns.tolist() if count else [])
        assert (columns[count:] == -1).all()


def test_what_stands_in_rows_that_do_not_count_is_not_read():
    costs = np.full((1, 3, 3), np.nan)
    costs[0, :2] = [[1.0, 2.0, 3.0], [1.0, 5.0, 5.0]]
    assert assign_all(costs, np.array([2])).tolist() == [[1, 0, -1]]


def test_no_table_and_no_row_need_nothing():
    assert assign_all(np.zeros((0, 3, 4)), np.zeros(0, dtype=np.int64)).shape == (0, 3)
    assert assign_all(np.zeros((2, 0, 4)), np.zeros(2, dtype=np.int64)).shape == (2, 0)


def test_a_hundred_queries_for_each_of_64_pictures_take_a_small_part_of_a_second():
    draw = np.random.default_rng(0)
    costs, counts = draw.normal(size=(64, 20, 100)), draw.integers(5, 21, 64)
    begun = time.process_time()
    assign_all(costs, counts)
    assert time.process_time() - begun < 0.5


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"assign needs a table of \(rows, columns\), got shape \(3,\)"):
        assign(np.zeros(3))
    with pytest.raises(ValueError, match=r"assign_all needs tables of .* got shapes \(2, 2, 2\) and \(3,\)"):
        assign_all(np.zeros((2, 2, 2)), np.zeros(3, dtype=np.int64))


def test_more_rows_than_columns_are_refused_where_each_needs_one():
    with pytest.raises(ValueError, match="a table has 3 rows to place among 2 columns"):
        assign_all(np.zeros((1, 3, 2)), np.array([3]))


def test_a_cost_that_is_no_number_is_refused():
    costs = np.zeros((2, 2, 2))
    costs[1, 1, 0] = np.nan
    with pytest.raises(ValueError, match="row 1 of table 1 has one that is not"):
        assign_all(costs, np.array([2, 2]))
