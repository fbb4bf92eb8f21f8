import numpy as np
import pytest
import soundfile
import torch

from regard.data.audio.reading import read_header, read_sound
from regard.errors import DataError

TONE = np.sin(2 * np.pi * 300 * np.arange(8000) / 16_000).astype(np.float32) * 0.5


def write(path, samples=TONE, rate=16_000, **options):
    soundfile.write(path, samples, rate, **options)
    return path


@pytest.mark.parametrize(
    ("name", "options", "tolerance"),
    [
        ("a.wav", {}, 1e-4),
        ("a.wav", {"subtype": "PCM_U8"}, 1e-2),
        ("a.flac", {"subtype": "PCM_24"}, 1e-6),
        ("a.ogg", {}, 0.05),
        ("a.mp3", {}, 0.05),
    ],
)
def test_sound_is_read_in_every_format(tmp_path, name, options, tolerance):
    read = read_sound(write(tmp_path / name, **options))
    assert read.rate == 16_000
    assert (read.samples[1000:7000] - torch.from_numpy(TONE)[1000:7000]).abs().max() < tolerance
    assert read.seconds == pytest.approx(0.5, abs=0.01)


def test_channels_are_averaged_and_another_rate_is_resampled(tmp_path):
    stereo = np.stack([TONE, np.zeros_like(TONE)], 1)
    path = write(tmp_path / "two.wav", stereo)
    assert read_header(path)[:3] == (8000, 16_000, 2)
    assert torch.allclose(read_sound(path).samples, torch.from_numpy(TONE) / 2, atol=1e-4)
    slow = read_sound(path, 8_000)
    assert (slow.rate, len(slow.samples)) == (8_000, 4_000)
    assert torch.allclose(slow.samples[100:-100], torch.from_numpy(TONE[::2])[100:-100] / 2, atol=2e-3)


def test_silence_one_sample_and_clipped_sound_are_read(tmp_path):
    assert read_sound(write(tmp_path / "s.wav", np.zeros(100))).samples.abs().max() == 0
    assert len(read_sound(write(tmp_path / "one.wav", np.ones(1))).samples) == 1
    loud = write(tmp_path / "clip.wav", 4 * TONE, subtype="FLOAT")
    assert read_sound(loud).samples.max() == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello there", r"t\.tsv:3: .*a\.wav needs to be sound .* it begins like a text, with 'hello there'"),
        (b"", "and it is empty"),
        (b"RIFF\x00\x01\x02\x03", "damaged or of another kind: it begins with the bytes 52 49"),
    ],
)
def test_a_file_that_is_no_sound_is_named(tmp_path, content, message):
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_sound(tmp_path / "a.wav", where="t.tsv:3")


def test_sound_that_cannot_be_learned_from_is_an_error(tmp_path, monkeypatch):
    broken = TONE.copy()
    broken[4000] = np.nan
    with pytest.raises(DataError, match=r"needs finite samples, got 1 of 8,000 .* the first at 0\.250 s"):
        read_sound(write(tmp_path / "nan.wav", broken, subtype="FLOAT"))
    with pytest.raises(DataError, match=r"needs sound, got none"):
        read_sound(write(tmp_path / "none.wav", np.zeros(0)))
    with pytest.raises(DataError, match=r"there is no file .*gone.wav"):
        read_sound(tmp_path / "gone.wav")
    monkeypatch.setattr("regard.data.audio.reading.MAX_SAMPLES", 7999)
    with pytest.raises(DataError, match=r"at most 4 hours long"):
        read_header(write(tmp_path / "long.wav"))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "a.wav")
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(DataError, match=r"pip install 'regard\[audio\]'"):
        read_sound(path)
