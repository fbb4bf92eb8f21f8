"""Features against a definition in plain NumPy, in float64 with a discrete Fourier transform by its formula."""

import numpy as np
import pytest
import torch

from regard.config import AudioData
from regard.data.audio import features
from regard.data.audio.features import LogMel, Mfcc, build_features, build_mel_filters, hertz_to_mel, mel_to_hertz

RATE, WINDOW, HOP, BINS, POINTS = 8_000, 100, 40, 12, 128


@pytest.fixture
def sound():
    generator = np.random.default_rng(0)
    return np.sin(2 * np.pi * 900 * np.arange(700) / RATE) + 0.1 * generator.standard_normal(700)


def reference_mel(sound, frame):
    """Log mel of one frame: a Hann window of 100 samples in the middle of 128, centred on sample 40 t."""
    padded = np.concatenate([np.zeros(POINTS // 2), sound, np.zeros(POINTS)])
    part = padded[frame * HOP : frame * HOP + POINTS]
    window = np.zeros(POINTS)
    window[(POINTS - WINDOW) // 2 :][:WINDOW] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    spectrum = [
        abs(sum(part[n] * window[n] * np.exp(-2j * np.pi * k * n / POINTS) for n in range(POINTS))) ** 2
        for k in range(POINTS // 2 + 1)
    ]
    corners = np.linspace(2595 * np.log10(1 + 20 / 700), 2595 * np.log10(1 + RATE / 2 / 700), BINS + 2)
    corners = 700 * (10 ** (corners / 2595) - 1)
    mel = []
    for b in range(BINS):
        left, middle, right = corners[b : b + 3]
        frequencies = np.arange(POINTS // 2 + 1) * RATE / POINTS
        filter_ = np.maximum(0, np.minimum((frequencies - left) / (middle - left), (right - frequencies) / (right - middle)))
        mel.append(max(1e-10, float(filter_ @ spectrum)))
    return np.log(mel)


def test_log_mel_is_what_its_formula_says(sound):
    result = LogMel(RATE, BINS, WINDOW, HOP)(torch.from_numpy(sound))
    assert result.shape == (1 + 700 // HOP, BINS)
    for frame in (0, 7, 17):
        np.testing.assert_allclose(result[frame].numpy(), reference_mel(sound, frame), atol=2e-4)


def test_cepstra_are_the_cosine_transform_of_log_mel(sound):
    front = Mfcc(RATE, BINS, WINDOW, HOP, coefficients=5)
    mel = reference_mel(sound, 7)
    cosines = [[np.cos(np.pi * k * (b + 0.5) / BINS) for b in range(BINS)] for k in range(5)]
    expected = np.sqrt(2 / BINS) * (np.array(cosines) @ mel)
    expected[0] /= np.sqrt(2)
    result = front(torch.from_numpy(sound))
    assert front.channels == result.shape[1] == 5
    np.testing.assert_allclose(result[7].numpy(), expected, atol=1e-3)


def test_long_sound_is_transformed_in_parts(sound, monkeypatch):
    front, samples = LogMel(RATE, BINS, WINDOW, HOP), torch.from_numpy(sound)
    whole = front(samples)
    monkeypatch.setattr(features, "BLOCK", 5)
    torch.testing.assert_close(front(samples), whole)


def test_silence_and_one_sample_have_features():
    front = LogMel()
    assert front(torch.zeros(1600)).unique().tolist() == pytest.approx([-23.02585], abs=1e-4)
    assert front(torch.ones(1)).shape == (1, 80)
    assert front.count(1600) == 11


def test_mel_scales_are_inverted_and_meet_known_points():
    for scale in ("htk", "slaney"):
        frequencies = torch.tensor([0.0, 440.0, 1000.0, 5000.0], dtype=torch.float64)
        torch.testing.assert_close(mel_to_hertz(hertz_to_mel(frequencies, scale), scale), frequencies)
    assert float(hertz_to_mel(torch.tensor(1000.0, dtype=torch.float64), "htk")) == pytest.approx(999.9855)
    assert float(hertz_to_mel(torch.tensor(6400.0, dtype=torch.float64), "slaney")) == pytest.approx(42.0)
    filters = build_mel_filters(40, 16_000, 2048, 0.0, 8000.0, "slaney")
    areas = filters.sum(0) * 16_000 / 2048
    torch.testing.assert_close(areas, torch.ones(40), atol=0.05, rtol=0)


def test_settings_that_no_features_have_are_errors():
    for settings, message in (
        ({"rate": 0}, "1 or more, got 0"),
        ({"low": 9000.0}, "from 0 Hz to 8000"),
        ({"bins": 400}, "narrower than the 31.2 Hz"),
    ):
        with pytest.raises(ValueError, match=message):
            LogMel(**settings)
    with pytest.raises(ValueError, match=r"from 1 to the number of bins, 40, got 41"):
        Mfcc(coefficients=41)
    assert build_features(AudioData()) == LogMel()
    assert build_features(AudioData(features="mfcc", bins=40)) == Mfcc()
