import itertools

import numpy as np

from regard.viewer.figure.layers import layout


def test_a_chain_is_a_straight_line():
    found = layout({"a": 10.0, "b": 30.0, "c": 20.0}, [("a", "b"), ("b", "c")], 5.0)
    assert [rank for _, rank in found.places.values()] == [0, 1, 2]
    assert len({x for x, _ in found.places.values()}) == 1
    assert found.bends == [[], []]


def test_a_long_arrow_passes_every_rank_between():
    found = layout({"a": 10.0, "b": 10.0, "c": 10.0}, [("a", "b"), ("b", "c"), ("a", "c")], 5.0)
    (bend,) = found.bends[2]
    assert bend[1] == 1
    assert abs(bend[0] - found.places["b"][0]) >= 5 + 5 + 2.5 - 1e-6


def test_boxes_of_a_rank_never_touch():
    random = np.random.default_rng(0)
    sizes = {str(number): float(random.integers(5, 60)) for number in range(30)}
    arrows = [(str(a), str(b)) for a, b in itertools.combinations(range(30), 2) if random.random() < 0.08]
    found = layout(sizes, arrows, 4.0)
    for one, other in itertools.combinations(sizes, 2):
        (x, rank), (x2, rank2) = found.places[one], found.places[other]
        if rank == rank2:
            assert abs(x - x2) >= (sizes[one] + sizes[other]) / 2 + 4 - 1e-6
    assert all(found.places[end][1] > found.places[start][1] for start, end in arrows)


def test_a_circle_is_drawn_with_one_arrow_going_back():
    found = layout({"a": 10.0, "b": 10.0, "c": 10.0}, [("a", "b"), ("b", "c"), ("c", "a")], 5.0)
    ranks = {name: rank for name, (_, rank) in found.places.items()}
    assert ranks == {"a": 0, "b": 1, "c": 2}
    assert [level for _, level in found.bends[2]] == [1]


def test_two_inputs_do_not_cross():
    sizes = dict.fromkeys("abxy", 10.0)
    found = layout(sizes, [("a", "y"), ("b", "x")], 5.0)
    assert (found.places["a"][0] - found.places["b"][0]) * (found.places["y"][0] - found.places["x"][0]) > 0


def test_an_input_stands_just_before_what_takes_it():
    found = layout(dict.fromkeys("abcd", 10.0), [("a", "b"), ("b", "c"), ("d", "c")], 5.0)
    assert found.places["d"][1] == 1


def test_one_box_alone_has_a_place():
    assert layout({"a": 10.0}, [], 5.0).places == {"a": (0.0, 0)}
