import pytest
import torch

from regard.alignment.stretches import find_stretches

SECONDS = 0.04


def read(places, frames=100, width=2.0):
    """Weights of steps that read around these frames."""
    middle = torch.tensor(places, dtype=torch.float32)[:, None]
    return torch.softmax(-(((torch.arange(frames) - middle) / width) ** 2), 1)


def bounds(stretches):
    return [time for stretch in stretches for time in (stretch.start, stretch.end)]


def test_straight_reading_has_neither():
    assert find_stretches(read(range(2, 100, 4)), SECONDS) == ((), ())


def test_a_jump_over_sound_is_a_hole_and_over_silence_none():
    weights = read([*range(2, 30, 4), *range(62, 100, 4)])
    [hole] = find_stretches(weights, SECONDS).holes
    assert bounds([hole]) == pytest.approx([30 * SECONDS, 58 * SECONDS], abs=3 * SECONDS)
    assert hole.step == 7
    silence = torch.ones(100, dtype=torch.bool)
    silence[32:60] = False
    assert find_stretches(weights, SECONDS, activity=silence) == ((), ())


def test_sound_before_the_first_step_and_after_the_last_is_a_hole():
    holes = find_stretches(read(range(30, 70, 4)), SECONDS).holes
    assert bounds(holes) == pytest.approx([0, 25 * SECONDS, 71 * SECONDS, 4.0], abs=4 * SECONDS)
    assert bounds(find_stretches(torch.zeros(0, 100), SECONDS).holes) == [0, 4.0]


def test_a_return_is_a_loop_from_where_it_went_back_to():
    [loop], holes = find_stretches(read([*range(2, 60, 4), *range(22, 100, 4)]), SECONDS)[::-1]
    assert not holes
    assert bounds([loop]) == pytest.approx([22 * SECONDS, 58 * SECONDS], abs=4 * SECONDS)
    assert loop.step == 15


def test_a_single_step_that_looks_elsewhere_is_neither():
    places = list(range(2, 100, 4))
    places[12] = 5
    assert find_stretches(read(places), SECONDS) == ((), ())


def test_short_stretches_count_where_they_are_asked_for():
    weights = read([*range(2, 30, 4), *range(44, 100, 4)])
    assert not find_stretches(weights, SECONDS).holes
    assert len(find_stretches(weights, SECONDS, least_hole=0.1).holes) == 1
