import math

import torch
from torch.testing import assert_close

from regard.data.audio.features import LogMel
from regard.tasks.speak.griffin_lim import estimate_magnitude, invert_log_mel

FRONT = LogMel(rate=8000, bins=40, window=400, hop=100)


def test_the_sound_has_the_spectrogram_that_it_was_made_from_and_its_pitch():
    seconds = torch.arange(8000) / 8000
    frames = FRONT(0.3 * torch.sin(2 * math.pi * 500 * seconds) + 0.1 * torch.sin(2 * math.pi * 1500 * seconds))
    samples = invert_log_mel(FRONT, frames, iterations=20)
    assert len(samples) == 8000
    assert samples.abs().max() <= 1
    loud = frames > frames.max() - 6
    assert (FRONT(samples) - frames)[loud].abs().mean() < 0.35
    assert abs(torch.fft.rfft(samples).abs().argmax().item() - 500) <= 20
    assert_close(invert_log_mel(FRONT, frames, iterations=2), invert_log_mel(FRONT, frames, iterations=2))


def test_estimated_magnitudes_have_the_mel_spectrogram():
    frames = torch.randn(5, 40)
    power = estimate_magnitude(FRONT, frames).T.square()
    assert (power >= 0).all()
    assert ((power @ FRONT.filters).log() - frames).abs().mean() < 0.5


def test_one_frame_is_one_sample():
    assert invert_log_mel(FRONT, torch.zeros(1, 40), iterations=1).shape == (1,)
