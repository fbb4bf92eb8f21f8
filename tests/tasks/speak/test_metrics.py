import math

import pytest
import torch

from regard.alignment.words import Units
from regard.data.audio.features import build_cosines
from regard.tasks.speak.metrics import best_head, mean_of, measure_reading, mel_cepstral_distortion, share_of_words


def test_distortion_is_worked_out_by_hand_and_ignores_loudness_and_speed():
    frames = torch.randn(5, 20)
    assert mel_cepstral_distortion(frames, frames) == pytest.approx(0.0)
    assert mel_cepstral_distortion(frames, frames + 3.0) == pytest.approx(0.0, abs=1e-4)
    assert mel_cepstral_distortion(frames, frames.repeat_interleave(2, 0)) == pytest.approx(0.0, abs=1e-4)
    step = 2 * build_cosines(20, 14)[:, 3]  # one cepstral coefficient more by 2, and half of that is of the amplitude
    assert mel_cepstral_distortion(frames[:1], frames[:1] + step) == pytest.approx(
        10 / math.log(10) * math.sqrt(2), rel=1e-4
    )


def test_the_head_that_reads_straight_on_says_which_words_were_missed():
    straight = torch.eye(9).repeat_interleave(2, 0)
    jumped = straight[[*range(6), *range(12, 18)]]
    units = Units(("one", "two", "three"), torch.eye(3, dtype=torch.bool).repeat_interleave(3, 1))
    blurred = torch.full((12, 9), 1 / 9)
    reading = measure_reading(torch.stack((blurred, jumped)), units)
    assert (reading.skipped, reading.repeated, reading.words) == (("two",), (), 3)
    assert reading.diagonality == 1.0
    assert torch.equal(best_head(torch.stack((blurred, jumped))), jumped)


def test_means_and_shares_have_intervals():
    assert mean_of([1.0, 3.0], "of two").value == 2.0
    share = share_of_words([1, 0], [10, 10], "of twenty")
    assert share.value == 5.0
    assert share.low <= share.value <= share.high
