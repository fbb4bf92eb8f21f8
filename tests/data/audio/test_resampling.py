import math

import pytest
import torch

from regard.data.audio import resampling
from regard.data.audio.resampling import resample


def tone(frequency, rate, seconds=0.5):
    return torch.sin(2 * math.pi * frequency * torch.arange(int(rate * seconds)) / rate)


@pytest.mark.parametrize(("rate", "new"), [(44_100, 16_000), (8_000, 16_000), (16_000, 14_400), (22_050, 16_000)])
def test_a_tone_is_the_same_tone_at_another_rate(rate, new):
    result = resample(tone(440, rate), rate, new)
    assert len(result) == math.ceil(int(rate * 0.5) * new / rate)
    assert (result[300:-300] - tone(440, new)[300 : len(result) - 300]).abs().max() < 1e-3


def test_what_the_lower_rate_cannot_hold_is_filtered_out():
    assert resample(tone(5_000, 16_000), 16_000, 8_000)[100:-100].abs().max() < 1e-3


def test_long_sound_is_convolved_in_parts(monkeypatch):
    sound = torch.randn(3000)
    whole = resample(sound, 3, 2)
    monkeypatch.setattr(resampling, "BLOCK", 64)
    torch.testing.assert_close(resample(sound, 3, 2), whole)


def test_one_sample_stays_one_and_equal_rates_change_nothing():
    assert resample(torch.ones(1), 8_000, 16_000).shape == (2,)
    sound = torch.randn(5)
    assert resample(sound, 8, 8) is sound
    with pytest.raises(ValueError, match=r"1 Hz or more, got 0 and 8"):
        resample(sound, 0, 8)
