import itertools

import pytest
import torch
from torch.nn import functional as F

from regard.metrics.reading import find_forward_path, find_misreadings, measure_diagonality


def look(places, keys):
    return F.one_hot(torch.tensor(places), keys).float()


WORDS = torch.eye(4, dtype=torch.bool).repeat_interleave(3, 1)  # four words of three letters


def test_the_best_monotonic_path_is_the_best_of_all():
    weights = torch.rand(4, 3)
    monotonic = [path for path in itertools.product(range(3), repeat=4) if list(path) == sorted(path)]
    best = max(monotonic, key=lambda path: weights[range(4), list(path)].sum())
    assert find_forward_path(weights).tolist() == list(best)


def test_diagonality_is_the_share_near_the_path():
    assert measure_diagonality(look(range(20), 20)) == 1.0
    assert (
        measure_diagonality(torch.full((20, 20), 0.05)) == 0.15
    )  # the path stays at the first key, and two after it are near
    half = 0.5 * look(range(20), 20) + 0.5 * look([(place + 10) % 20 for place in range(20)], 20)
    assert measure_diagonality(half) == pytest.approx(0.5, abs=0.05)


def test_straight_reading_misses_nothing():
    assert find_misreadings(look(range(12), 12), WORDS) == ((), ())


def test_a_word_that_is_jumped_over_is_skipped():
    reading = find_misreadings(look([0, 1, 2, 6, 7, 8, 9, 10, 11], 12), WORDS)
    assert reading == ((1,), ())


def test_a_word_that_is_returned_to_is_repeated_and_not_skipped():
    reading = find_misreadings(look([0, 1, 2, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 8, 9, 10, 11], 12), WORDS)
    assert reading == ((), (1,))


def test_a_single_step_back_is_no_repetition():
    assert find_misreadings(look([0, 1, 2, 3, 4, 5, 1, 6, 7, 8, 9, 10, 11], 12), WORDS) == ((), ())


def test_weights_without_steps_have_no_path():
    with pytest.raises(ValueError, match=r"one step and one key or more, got weights of \(0, 3\)"):
        find_forward_path(torch.zeros(0, 3))
