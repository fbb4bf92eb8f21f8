import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.viewer.metrics.quantise import (
    farthest,
    mean_pyramid,
    pyramid,
    quantise,
    quantise_signed,
    reduce,
    restore,
    scale_of,
    signed_bytes,
)

sides = st.integers(1, 700)


def test_a_quarter_is_stored_as_half_of_the_way():
    assert quantise(np.array([0.0, 0.25, 1.0])).tolist() == [0, 128, 255]
    assert restore(np.array([0, 51, 255], np.uint8)).tolist() == pytest.approx([0, 0.04, 1])


def test_what_comes_back_is_as_close_as_the_docstring_says():
    weights = np.concatenate([np.linspace(0, 1, 100_001), np.logspace(-8, 0, 10_000)])
    error = np.abs(restore(quantise(weights)).astype(float) - weights)
    assert (error <= np.sqrt(weights) / 255 + 1 / 510**2 + 1e-7).all()
    assert error.max() > 0.0035, "the bound is about tight at 1"


def test_the_smallest_weight_that_is_seen_is_a_few_millionths():
    assert quantise(np.array([3.8e-6, 3.9e-6])).tolist() == [0, 1]


def test_weights_beyond_one_are_stored_by_their_scale():
    weights = np.array([[-0.5, 1.0, 4.0]])
    assert scale_of(weights) == 4
    assert scale_of(np.array([0.2])) == 1
    assert scale_of(np.zeros((0, 3))) == 1
    assert quantise(weights, 4.0).tolist() == [[0, 128, 255]]
    assert restore(quantise(weights, 4.0), 4.0)[0].tolist() == pytest.approx([0, 1.0, 4], abs=0.02)


def test_half_precision_is_quantised_as_what_it_holds():
    weights = np.random.default_rng(0).random((3, 40, 50)).astype(np.float16)
    assert (quantise(weights) == quantise(weights.astype(np.float64))).all()


@given(rows=sides, columns=sides, place=st.tuples(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True)))
def test_a_peak_of_one_cell_is_on_every_level_of_the_pyramid(rows, columns, place):
    matrix = np.full((rows, columns), 3, np.uint8)
    row, column = int(place[0] * rows), int(place[1] * columns)
    matrix[row, column] = 200
    levels = pyramid(matrix)
    assert levels[0] is matrix
    assert max(levels[-1].shape) <= 128
    for number, level in enumerate(levels):
        assert level.shape == (-(-rows // 2**number), -(-columns // 2**number))
        assert level[row >> number, column >> number] == 200
        assert (level == 200).sum() == 1


@given(rows=sides, columns=sides, height=st.integers(1, 300), width=st.integers(1, 300), seed=st.integers(0, 99))
def test_reducing_keeps_every_maximum_and_invents_nothing(rows, columns, height, width, seed):
    matrix = np.random.default_rng(seed).integers(0, 256, (rows, columns), np.uint8)
    small = reduce(matrix, height, width)
    assert small.shape == (min(rows, height), min(columns, width))
    row, column = np.unravel_index(matrix.argmax(), matrix.shape)
    block = [
        max(cell for cell in range(cells) if cell * side // cells <= at)
        for cells, side, at in zip(small.shape, matrix.shape, (row, column), strict=True)
    ]
    assert small[tuple(block)] == matrix.max()
    assert set(np.unique(small)) <= set(np.unique(matrix))


def test_blocks_are_worked_by_hand():
    matrix = np.arange(15).reshape(3, 5)
    assert reduce(matrix, 2, 2).tolist() == [[1, 4], [11, 14]]
    assert reduce(matrix, 9, 1).tolist() == [[4], [9], [14]]
    assert pyramid(np.arange(130)[None])[1].tolist() == [list(range(1, 130, 2))]


def test_reducing_to_nothing_is_refused():
    with pytest.raises(ValueError, match="reduced to at least 1 x 1 cells, asked for 0 x 4"):
        reduce(np.ones((3, 3)), 0, 4)


def test_half_precision_is_looked_up_and_says_the_same():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    numbers = every[np.isfinite(every)]
    for scale in (1.0, 3.5):
        assert np.array_equal(quantise(numbers, scale), quantise(numbers.astype(np.float32), scale))
    assert np.array_equal(
        quantise(numbers[: 256 * 200].reshape(200, 256)[::3, ::2]),
        quantise(numbers[: 256 * 200].astype(np.float32).reshape(200, 256)[::3, ::2]),
    )


def test_signed_bytes_go_either_way_from_128_and_come_back_in_their_order():
    weights = np.array([[-1.0, -0.25, 0.0, 0.25, 1.0]])
    stored = quantise_signed(weights, 1.0)
    assert stored.tolist() == [[1, 64, 128, 192, 255]]
    assert signed_bytes(farthest(stored)).tolist() == stored.tolist()
    assert signed_bytes(reduce(farthest(stored), 1, 1)).tolist() == [[255]]
    assert signed_bytes(reduce(farthest(stored[:, :4]), 1, 2)).tolist() == [[1, 192]]


def test_a_pyramid_of_means_has_the_sizes_of_the_one_of_maxima_and_the_mean_of_every_block():
    matrix = np.random.default_rng(0).random((256, 512)).astype(np.float32)
    levels = mean_pyramid(matrix)
    assert [level.shape for level in levels] == [level.shape for level in pyramid(matrix)]
    np.testing.assert_allclose(levels[2], matrix.reshape(64, 4, 128, 4).mean((1, 3)), rtol=1e-5)
    assert mean_pyramid(np.ones((129, 3), np.float32))[1].tolist() == [[1.0, 1.0]] * 65
