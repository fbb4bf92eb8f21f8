import io
import wave

import numpy as np
import pytest
import soundfile
import torch
from torch.testing import assert_close

from regard.data.axis import Audio, Text
from regard.data.modality import Codec, Feedback
from regard.data.records import Record
from regard.errors import DataError
from regard.tasks.speak.codec import SpeechCodec, SpokenFrames
from regard.tasks.speak.config import SpeakData

DATA = SpeakData(bins=12, rate=8000)


def write(folder, name, seconds, pitch=440.0):
    soundfile.write(folder / name, 0.3 * np.sin(2 * np.pi * pitch * np.arange(int(8000 * seconds)) / 8000), 8000)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    write(folder, "a.wav", 0.5)
    write(folder, "b.wav", 1.0, 880.0)
    return [Record("Ab, c!", "a.wav", f"{folder}/t.tsv:1"), Record("It's bb", "b.wav", f"{folder}/t.tsv:2")]


@pytest.fixture
def codec(records):
    fitted = SpeechCodec.fit(records, DATA)
    return fitted.standardise(fitted.encode_all(records).examples)


def test_it_has_the_protocol_and_frames_are_normalised_over_the_training_data(codec, records):
    assert isinstance(codec, Codec)
    assert isinstance(codec.feedback, Feedback)
    examples = codec.encode_all(records).examples
    assert [example.frames for example in examples] == [41, 81]
    [(_, batch)] = codec.loader(examples, 1000).in_order()
    assert batch.target.keep.sum(1).tolist() == [41, 81]
    kept = batch.target.data[batch.target.keep]
    assert_close(kept.mean(0), torch.zeros(12), atol=1e-3, rtol=0)
    assert_close(codec.restore(codec.encode_target(records[0])), codec.cache(examples).features(0), atol=1e-3, rtol=1e-3)
    assert codec.pace == pytest.approx(81 / 8)
    assert codec.limit_frames(torch.tensor([1, 1000])).tolist() == [16, codec.max_frames]


def test_words_are_letters_without_the_punctuation_around_them(codec, records):
    units = codec.word_units(codec.encode(records[0]))
    assert units.texts == ("ab", "c")
    assert units.members.int().tolist() == [[1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0]]
    assert codec.word_units(codec.encode(records[1])).texts == ("it's", "bb")


def test_it_is_saved_and_loaded(codec, records, tmp_path):
    codec.save(tmp_path)
    assert SpeechCodec.load(tmp_path) == codec or SpeechCodec.load(tmp_path).normalisation == codec.normalisation
    assert SpeechCodec.load(tmp_path).encode(records[0]).source == codec.encode(records[0]).source
    (tmp_path / "codec.json").write_text('{"format": 9}')
    with pytest.raises(ValueError, match="needs to be the settings of a codec of speech, format 1: it is of another format"):
        SpeechCodec.load(tmp_path)


def test_recordings_that_are_too_long_are_dropped_from_a_training_alone(codec, records):
    short = codec.adapt(SpeakData(bins=12, rate=8000, max_seconds=0.6))
    assert len(short.encode_all(records).examples) == 1
    assert len(short.encode_all(records, "truncate").examples) == 2


def test_recordings_may_be_arrays_of_log_mel_frames(codec, records, tmp_path):
    frames = codec.cache(codec.encode_all(records).examples).features(0).numpy()
    np.savez(tmp_path / "f.npz", a=frames, wrong=frames[:, :5])
    record = Record("ab", "f.npz#a", f"{tmp_path}/t.tsv:1")
    assert_close(codec.encode_target(record), codec.encode_target(records[0]))
    with pytest.raises(DataError, match=r"has frames of 5 channels, and data.bins=12 are learned"):
        codec.encode(record._replace(target="f.npz#wrong"))


def test_sound_is_written_as_wav_and_laid_under_an_axis(codec, records):
    spoken = SpokenFrames(codec.encode_target(records[0]), torch.rand(9, 7))
    axis = codec.target_axis(spoken)
    assert isinstance(axis, Audio)
    assert (len(axis), axis.rate, axis.spectrogram.shape) == (9, 8000, (12, 41))
    assert codec.target_pieces(spoken)[:2] == ["0.00 s", "0.06 s"]
    assert isinstance(codec.axis(codec.encode(records[0])), Text)
    buffer = io.BytesIO()
    codec.write(codec.decode(spoken), buffer)
    buffer.seek(0)
    with wave.open(buffer) as sound:
        assert (sound.getframerate(), sound.getnframes(), sound.getsampwidth()) == (8000, 40 * 100, 2)


def test_a_recording_without_samples_is_an_error(codec, tmp_path):
    soundfile.write(tmp_path / "none.wav", np.zeros(0), 8000)
    with pytest.raises(DataError, match="needs sound, got none: it has a header and no samples"):
        codec.encode(Record("ab", "none.wav", f"{tmp_path}/t.tsv:1"))
