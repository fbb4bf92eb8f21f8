import numpy as np
import pytest
import soundfile
import torch
from torch.testing import assert_close

from regard.data.audio.batch import AudioExample
from regard.data.audio.cache import FeatureCache
from regard.data.audio.features import LogMel
from regard.data.audio.resampling import resample
from regard.data.records import Record
from regard.errors import DataError

FRONT = LogMel(8_000, 12, 100, 40)


class Tone:
    """A tone that counts how often it is synthesised."""

    def __init__(self, rate=8_000):
        self.rate, self.length, self.calls = rate, rate // 4, 0

    def __call__(self):
        self.calls += 1
        return torch.sin(2 * torch.pi * 500 * torch.arange(self.length) / self.rate)


@pytest.fixture
def tone():
    return Tone()


def test_features_are_those_of_the_sound_and_are_computed_once(tone):
    cache = FeatureCache([AudioExample(tone, 51)], FRONT)
    assert len(cache) == 1
    features = cache.features(0)
    assert cache.features(0) is features
    assert tone.calls == 1
    assert_close(features, FRONT(tone()))


def test_features_beyond_the_room_are_computed_again(tone):
    size = 51 * 12 * 4
    small = FeatureCache([AudioExample(tone, 51)] * 2, FRONT, room=size)
    first, second = small.features(0), small.features(1)
    assert small.features(0) is first
    assert small.features(1) is not second
    assert_close(small.features(1), second)
    assert tone.calls == 4


def test_a_faster_recording_is_shorter_and_has_a_higher_pitch(tone):
    cache = FeatureCache([AudioExample(tone, 51)], FRONT)
    assert_close(cache.features(0, 1.25), FRONT(resample(tone(), 1250, 1000)))
    assert len(cache.features(0, 1.25)) == 41
    bins = torch.arange(12.0)
    slow, fast = (cache.features(0, speed)[20].exp() for speed in (1.0, 1.25))
    assert fast @ bins / fast.sum() > slow @ bins / slow.sum()


def test_sound_of_another_rate_is_resampled():
    cache = FeatureCache([AudioExample(Tone(16_000), 51)], FRONT)
    assert cache.samples(0).shape == (2000,)
    assert cache.features(0).shape == (51, 12)


def test_files_are_read_as_sound_or_as_features(tone, tmp_path):
    soundfile.write(tmp_path / "a.wav", tone().numpy(), 8_000, subtype="FLOAT")
    np.save(tmp_path / "b.npy", np.arange(40.0).reshape(20, 2))
    examples = [AudioExample(tmp_path / name, 1) for name in ("a.wav", "b.npy")]
    cache = FeatureCache(examples, FRONT)
    assert_close(cache.features(0), FRONT(tone()), atol=1e-4, rtol=1e-4)
    assert cache.features(1)[:, 1].tolist() == [2.0 * frame + 1 for frame in range(20)]
    assert cache.features(1, 2.0).shape == (10, 2)


def test_an_error_names_the_line_of_the_table(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"text")
    example = AudioExample(tmp_path / "a.wav", 1, None, Record("a.wav", None, "t.tsv:3"))
    with pytest.raises(DataError, match=r"t\.tsv:3"):
        FeatureCache([example], FRONT).features(0)
