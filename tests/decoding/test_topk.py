import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.topk import select_highest


def test_the_best_come_first():
    values, places = select_highest(torch.tensor([[1.0, 3.0, 2.0]]), 2)
    assert values.tolist() == [[3.0, 2.0]]
    assert places.tolist() == [[1, 2]]


def test_more_than_there_are_gives_all():
    assert select_highest(torch.tensor([[1.0, 3.0]]), 5)[1].tolist() == [[1, 0]]


def test_a_tie_across_the_last_place_goes_to_the_left():
    assert select_highest(torch.tensor([[0.0, 1.0, 0.0, 0.0], [2.0, 1.0, 0.0, -1.0]]), 2)[1].tolist() == [[1, 0], [0, 1]]


@given(
    st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0]), min_size=7, max_size=7), min_size=1, max_size=4),
    st.integers(1, 7),
)
def test_it_is_a_stable_sort_cut_short(rows, count):
    values, places = select_highest(torch.tensor(rows), count)
    for row, value, place in zip(rows, values.tolist(), places.tolist(), strict=True):
        assert place == sorted(range(7), key=lambda each: -row[each])[:count]
        assert value == [row[each] for each in place]


def test_the_impossible_never_displaces_the_possible():
    low = float("-inf")
    values, places = select_highest(torch.tensor([[low, 1.0, low, 0.0]]), 3)
    assert values.tolist() == [[1.0, 0.0, low]]
    assert places[0, :2].tolist() == [1, 3]
