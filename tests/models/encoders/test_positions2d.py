import math

import pytest
import torch
from torch.testing import assert_close

from regard.models.encoders.positions2d import GridLearned, GridSinusoidal, build_grid_positions

KEEP = torch.zeros(2, 3, 4, dtype=torch.bool)
KEEP[0] = KEEP[1, :2, :2] = True


def vectors(positions, size=4, keep=KEEP):
    """What is added to a map of zeros, as batch rows columns size."""
    return positions(torch.zeros(len(keep), size, *keep.shape[1:]), keep).movedim(1, -1)


def test_half_of_a_vector_is_the_row_and_half_the_column():
    found = vectors(GridSinusoidal(4))
    assert_close(found[0, 2, 1], torch.tensor([math.sin(2), math.cos(2), math.sin(1), math.cos(1)]))
    assert_close(found[0], found[1])
    assert_close(found[0, :, 0, :2], found[0, :, 3, :2])
    assert_close(found[0, 0, :, 2:], found[0, 2, :, 2:])


def test_normalised_the_same_part_of_every_picture_has_the_same_position():
    found = vectors(GridSinusoidal(4, normalised=True))
    middle = 64 * 1.5 / 3  # of the second of three rows
    assert_close(found[0, 1, 0, :2], torch.tensor([math.sin(middle), math.cos(middle)]))
    assert_close(found[1, 0, 0, 2:], torch.tensor([math.sin(16), math.cos(16)]))  # a quarter of two columns
    large = torch.ones(1, 6, 4, dtype=torch.bool)
    small = torch.ones(1, 2, 4, dtype=torch.bool)
    both = (vectors(GridSinusoidal(4, normalised=True), keep=keep) for keep in (large, small))
    assert_close(*(each[0, row, 0] for each, row in zip(both, (1, 0), strict=True)))  # both lie a quarter down


def test_learned_ones_are_a_table_for_each_direction():
    positions = GridLearned(4, limit=4)
    found = vectors(positions)
    assert_close(found[1, 2, 3], torch.cat((positions.rows.weight[2], positions.columns.weight[3])))
    text = "GridLearned has vectors for 4 rows and columns, and met a map of 5 x 2; build it with limit=5 or more, shrink"
    with pytest.raises(ValueError, match=text):
        vectors(positions, keep=torch.ones(1, 5, 2, dtype=torch.bool))


def test_they_are_added_in_the_type_of_the_map():
    image = torch.ones(2, 4, 3, 4, dtype=torch.bfloat16)
    assert GridSinusoidal(4)(image, KEEP).dtype == torch.bfloat16
    assert_close(GridSinusoidal(4)(image.double(), KEEP), 1 + vectors(GridSinusoidal(4)).movedim(-1, 1).double())


def test_a_word_says_which():
    assert build_grid_positions("none", 8) is None
    assert isinstance(build_grid_positions("learned", 8), GridLearned)
    assert [build_grid_positions(kind, 8).normalised for kind in ("sinusoidal", "normalised")] == [False, True]
    with pytest.raises(ValueError, match="need to be sinusoidal, normalised, learned or none, got 'rotary'"):
        build_grid_positions("rotary", 8)


@pytest.mark.parametrize("size", [0, 5])
def test_an_odd_size_has_no_halves(size):
    with pytest.raises(ValueError, match=f"GridLearned needs an even size, half for rows and half for columns, got {size}"):
        GridLearned(size)
