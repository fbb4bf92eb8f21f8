import math

import numpy as np
import pytest

from regard.data.image.synthetic.shapes import OUTLINES, SHAPES, distance, extent, outline

GRID = np.stack(np.meshgrid(np.linspace(-1.4, 1.4, 57), np.linspace(-1.4, 1.4, 57)), axis=-1).reshape(-1, 2)


def test_a_circle_and_a_ring_are_known_by_their_radius():
    points = np.array([[0, 0], [0.5, 0], [0, 1], [3, 4]], float)
    assert distance("circle", points) == pytest.approx([-1, -0.5, 0, 4])
    assert distance("ring", points) == pytest.approx([0.45, -0.05, 0, 4])


def test_a_square_is_known_by_its_sides_and_corners():
    points = np.array([[0, 0], [0.7, 0.2], [1.7, 0], [0.7 + 3, 0.7 + 4]], float)
    assert distance("square", points) == pytest.approx([-0.7, 0, 1, 5])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_lies_in_its_circle_and_in_its_extent(shape):
    for turn in (0, 33):
        inside = GRID[distance(shape, GRID, turn) < 0]
        assert np.hypot(*inside.T).max() <= 1 + 1e-9
        left, top, right, bottom = extent(shape, turn)
        assert (inside[:, 0] >= left).all()
        assert (inside[:, 0] <= right).all()
        assert (inside[:, 1] >= top).all()
        assert (inside[:, 1] <= bottom).all()
        assert inside[:, 0].min() < left + 0.12
        assert inside[:, 1].max() > bottom - 0.12


@pytest.mark.parametrize("shape", OUTLINES)
def test_a_distance_is_that_to_the_nearest_of_many_points_of_the_edge(shape):
    corners = outline(shape, 20)
    steps = np.linspace(0, 1, 200)[:, None, None]
    edge = (corners * (1 - steps) + np.roll(corners, -1, 0) * steps).reshape(-1, 2)
    points = GRID[::37]
    nearest = np.hypot(*np.moveaxis(points[:, None] - edge, 2, 0)).min(1)
    assert np.abs(distance(shape, points, 20)) == pytest.approx(nearest, abs=0.01)


def test_areas_are_those_of_the_figures():
    cell = (2.8 / 56) ** 2
    for shape, area in {"circle": math.pi, "square": 1.96, "diamond": 1.3, "cross": 1.8 * 0.6 * 2 - 0.36}.items():
        assert (distance(shape, GRID + 1e-4) < 0).sum() * cell == pytest.approx(area, rel=0.06)


def test_a_turn_goes_clockwise():
    assert outline("triangle", 90)[0] == pytest.approx([1, 0])
