import numpy as np

from regard.decoding.engines.cuda.buckets import ALIGNED, pad_rows, round_up, round_up_steps


def test_sizes_are_rounded_up_by_less_than_a_quarter_to_few():
    assert [round_up(size) for size in (1, 2, 7, 8, 9, 11, 15, 16, 17, 33, 64, 65)] == [
        1,
        2,
        7,
        8,
        10,
        12,
        16,
        16,
        20,
        40,
        64,
        80,
    ]
    assert all(size <= round_up(size) < 1.25 * size for size in range(1, 3000))
    assert len({round_up(size) for size in range(1, 1025)}) == 36


def test_multiples_are_of_a_step():
    assert [round_up(size, 16) for size in (1, 16, 17, 128, 129, 200, 300)] == [16, 16, 32, 128, 160, 224, 320]


def test_room_doubles():
    assert [round_up_steps(steps) for steps in (1, ALIGNED, ALIGNED + 1, 33, 64)] == [16, 16, 32, 64, 64]


def test_rows_are_filled_up_with_the_first():
    assert pad_rows(np.array([3, 1]), 4).tolist() == [3, 1, 3, 3]
