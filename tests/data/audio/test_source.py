from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import soundfile
import torch
from torch.testing import assert_close

from regard.config import AudioData
from regard.data.audio import source
from regard.data.audio.batch import AudioExample
from regard.data.audio.features import LogMel, Mfcc
from regard.data.audio.normalise import Normalisation
from regard.data.audio.source import AudioSource, check_present, describe_source
from regard.data.records import Record
from regard.errors import DataError

FRONT = LogMel(8_000, 12, 100, 40)


@dataclass
class Silence:
    length: int
    rate: ClassVar[int] = 16_000

    def __call__(self):
        return torch.zeros(self.length)


@pytest.fixture
def folder(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(1000), 16_000)
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 16_000)
    np.save(tmp_path / "f.npy", np.arange(14.0).reshape(7, 2))
    return tmp_path


def record(folder, name, line=1):
    return Record(name, None, f"{folder}/t.tsv:{line}")


def test_frames_are_measured_by_the_header_at_the_rate_of_the_features(folder):
    assert AudioSource(front=FRONT).measure(record(folder, "a.wav")) == 1 + 500 // 40
    assert AudioSource(front=FRONT).measure(record(folder, "a.wav"), Silence(2001)) == 1 + 1001 // 40
    assert AudioSource(arrays=2).measure(record(folder, "f.npy")) == 7
    assert AudioSource(front=FRONT).is_known(record(folder, "a.wav"))


def test_a_recording_without_a_sample_is_an_error(folder):
    with pytest.raises(DataError, match=r"empty\.wav needs sound, got none: it has a header and no samples; leave it out"):
        AudioSource().measure(record(folder, "empty.wav"))


def test_features_of_other_channels_are_named_and_so_are_recordings(folder):
    with pytest.raises(DataError, match="has features of 2 channels, and this model reads features of 3 channels"):
        AudioSource(arrays=3).measure(record(folder, "f.npy"))
    with pytest.raises(DataError, match=r"reads recordings \(12 channels of log mel features at 8,000 Hz\)"):
        AudioSource(front=FRONT).measure(record(folder, "f.npy"))
    with pytest.raises(DataError, match=r"a\.wav is no file of features \(.npy, .npz, .safetensors\)"):
        AudioSource(arrays=2).measure(record(folder, "a.wav"))


def test_an_error_lists_the_first_of_many_recordings(folder, monkeypatch):
    monkeypatch.setattr(source, "LISTED", 2)
    names = ["empty.wav", "a.wav", "empty.wav", "empty.wav"]
    records = [record(folder, name, line) for line, name in enumerate(names, 1)]
    assert AudioSource(front=FRONT).measure_all(records[1:2]) == [13]
    with pytest.raises(DataError, match=r"^3 of 4 recordings cannot be read: .*t\.tsv:1: .*t\.tsv:3: .*; and 1 more$"):
        AudioSource().measure_all(records)
    with pytest.raises(DataError, match=r"3 of 3 recordings are missing: x:1 a, x:2 b and 1 more; paths count from"):
        check_present([Record(name, None, f"x:{line}") for line, name in enumerate("abc", 1)])


def test_times_are_those_of_the_hop_or_of_the_setting_for_features_from_files():
    example = AudioExample(Silence(1600), 21)
    sound = AudioSource(front=FRONT, stride=8)
    assert (sound.channels, sound.seconds_per_frame, sound.positions(example)) == (12, 0.005, 3)
    assert sound.pieces(example) == ["0.00 s", "0.04 s", "0.08 s"]
    files = AudioSource(front=FRONT, arrays=2, hop_ms=20.0)
    assert (files.channels, files.seconds_per_frame, files.positions(example)) == (2, 0.02, 6)
    assert files.grid(example) is None


def test_a_corpus_is_measured_where_features_are_normalised_by_it(folder):
    example = AudioExample(folder / "f.npy", 7)
    files = AudioSource(arrays=2, normalisation=Normalisation("corpus"))
    measured = files.standardise(files.cache([example] * 3))
    assert measured.normalisation == Normalisation("corpus", (6.0, 7.0), (4.0, 4.0))
    assert measured.features(example)[:, 0].tolist() == [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5]
    plain = AudioSource(arrays=2)
    assert plain.standardise(plain.cache([example])) is plain
    assert len(measured.axis(example)) == 2
    assert measured.axis(example).spectrogram.shape == (2, 7)


def test_examples_are_padded_and_a_budget_has_room_for_the_median(folder):
    files = AudioSource(arrays=2, normalisation=Normalisation("none"))
    np.save(folder / "g.npy", np.ones((3, 2)))
    examples = [AudioExample(folder / "f.npy", 7), AudioExample(folder / "g.npy", 3)]
    frames = files.collate(examples)
    assert frames.lengths == [7, 3]
    assert frames.data[1, :, 0].tolist() == [1.0] * 3 + [0.0] * 4
    assert files.budget([*examples, examples[1]], 10) == 30
    inputs = files.example_inputs([2, 5], torch.Generator().manual_seed(0))
    assert inputs.lengths == [8, 20]
    assert inputs.data.shape == (2, 20, 2)
    assert set(files.dynamic_axes) == set(inputs._fields)
    assert_close(next(batch for _, batch in files.loader(examples[:1], 7).in_order()).source.data, frames.data[:1])


def test_settings_describe_a_source_and_the_first_record_decides_what_is_read(folder):
    data = AudioData(features="mfcc", coefficients=5, normalise="none", hop_ms=20.0, max_seconds=1.0)
    sound = AudioSource(**describe_source([record(folder, "a.wav")], data, stride=2))
    assert isinstance(sound.front, Mfcc)
    assert (sound.channels, sound.stride, sound.max_frames, sound.seconds_per_frame) == (5, 2, 50, 0.02)
    assert sound.describe() == "5 channels of MFCC features at 16,000 Hz"
    assert AudioSource(**describe_source([record(folder, "f.npy")], data, stride=2)).channels == 2
    assert AudioSource(**describe_source([], data, stride=2)).arrays is None
    with pytest.raises(DataError, match=r"1 of 1 recordings are missing: .*t\.tsv:4 gone\.npy"):
        describe_source([record(folder, "gone.npy", 4)], data, stride=2)
