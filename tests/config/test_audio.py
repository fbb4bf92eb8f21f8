from pathlib import Path

import pytest

from regard import config
from regard.config import AudioTextData
from regard.config.audio import AudioData
from regard.errors import ConfigError
from regard.tasks.transcribe.task import Config

SPANS = ("data.window_ms", "data.hop_ms", "data.max_seconds", "data.batch_seconds", "search.excerpt_seconds")


def test_seconds_are_counted_in_frames_by_the_time_between_two():
    assert (AudioData().max_frames, AudioData().budget) == (3000, 20_000)
    data = AudioData(hop_ms=12.5, max_seconds=2.0, batch_seconds=5.0)
    assert (data.max_frames, data.budget) == (160, 400)
    assert AudioData(max_seconds=0.001, batch_seconds=0.001).max_frames == 1
    assert AudioData(max_seconds=0.001, batch_seconds=0.001).budget == 1


def test_settings_of_sound_are_read_and_written_like_any_others():
    read = config.read(Config, overrides=["data.features=mfcc", "model.encoder=pyramid", "train.ctc_weight=0.5"])
    assert (read.data.features, read.model.encoder, read.train.ctc_weight) == ("mfcc", "pyramid", 0.5)
    assert config.check(Config, config.parse_text(config.write(read), Path("config.toml"))) == read


def test_the_settings_that_name_columns_are_those_of_the_table():
    assert all(isinstance(getattr(AudioTextData(), name), str) for name in AudioTextData.columns)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.features=wavelet", r"data\.features needs to be log_mel or mfcc, got 'wavelet'"),
        ("data.normalise=max", r"data\.normalise needs to be utterance, corpus or none, got 'max'"),
        ("model.encoder=resnet", r"model\.encoder needs to be pyramid, transformer or conformer, got 'resnet'"),
        ("search.times=sound", r"search\.times needs to be auto, ctc or attention, got 'sound'"),
        ("data.bins=-1", r"data\.bins needs to be 0 or more, got -1"),
        *((f"{name}=0", f"{name} needs to be above 0, got 0") for name in SPANS),
    ],
)
def test_a_value_that_is_none_is_named(override, message):
    with pytest.raises(ConfigError, match=message):
        config.read(Config, overrides=[override])
