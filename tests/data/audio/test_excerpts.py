from itertools import pairwise

import pytest
import torch

from regard.config import AudioTextData
from regard.data.audio.codec import AudioTextCodec
from regard.data.audio.excerpts import split_frames, take_excerpts
from regard.data.audio.features import LogMel
from regard.data.audio.synthetic.syllables import synthesise


def test_stretches_cover_a_recording_and_overlap():
    assert split_frames(10, 10, 2) == [(0, 10)]
    stretches = split_frames(100, 30, 6)
    assert stretches[0].first == 0
    assert stretches[-1].first + stretches[-1].frames == 100
    for left, right in pairwise(stretches):
        assert left.first + left.frames - right.first >= 6
    with pytest.raises(ValueError, match="longer than what two of them share, got 5 and 5"):
        split_frames(100, 5, 5)


def test_excerpts_have_the_features_and_the_sound_of_their_stretch():
    [sound] = synthesise(1, 0)
    codec = AudioTextCodec.fit([sound.record], AudioTextData(normalise="none"), 4, synthetic=True)
    [whole] = codec.encode_all([sound.record], sounds=[sound]).examples
    excerpts = take_excerpts(whole, split_frames(whole.frames, 40, 8))
    features, cache = codec.features(whole), codec.cache(excerpts)
    for number, excerpt in enumerate(excerpts):
        first = excerpt.sound.first
        torch.testing.assert_close(cache.features(number), features[first : first + 40])
        assert cache.samples(number).equal(sound()[160 * first : 160 * (first + 40)])
    assert cache.features(0, 2.0).shape == (20, 80)


def test_the_features_of_a_recording_are_computed_once_for_all_excerpts(monkeypatch):
    [sound] = synthesise(1, 0)
    codec = AudioTextCodec.fit([sound.record], AudioTextData(normalise="none"), 4, synthetic=True)
    [whole] = codec.encode_all([sound.record], sounds=[sound]).examples
    lengths, compute = [], LogMel.__call__
    monkeypatch.setattr(LogMel, "__call__", lambda self, samples: lengths.append(len(samples)) or compute(self, samples))
    for excerpt in take_excerpts(whole, split_frames(whole.frames, 40, 8)):
        codec.features(excerpt)
    assert lengths == [len(sound())]
