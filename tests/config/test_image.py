from pathlib import Path

import pytest

from regard import config
from regard.config import ImageData
from regard.errors import ConfigError
from regard.tasks.caption.task import Config
from regard.tasks.classify.task import Config as Classify
from regard.tasks.vqa import task


def test_settings_of_pictures_are_read_and_written_like_any_others():
    read = config.read(Config, overrides=["data.height=32", "model.encoder=vit", "dropout.encoder=0.1"])
    assert (read.data.height, read.model.encoder, read.dropout.encoder) == (32, "vit", 0.1)
    assert config.check(Config, config.parse_text(config.write(read), Path("config.toml"))) == read


def test_an_encoder_of_texts_is_none_of_pictures():
    with pytest.raises(ConfigError, match=r"model\.encoder: Input should be 'resnet', 'densenet' or 'vit', got 'recurrent'"):
        config.read(Config, overrides=["model.encoder=recurrent"])


@pytest.mark.parametrize("setting", ["data.height=0", "data.batch_pixels=0", "model.stride=0"])
def test_what_counts_something_is_at_least_one(setting):
    with pytest.raises(ConfigError, match="needs to be 1 or more, got 0"):
        config.read(Config, overrides=[setting])


@pytest.mark.parametrize("name", ["glimpse_size", "glimpse_scales", "episodes", "eval_episodes"])
def test_glimpses_have_one_or_more_of_everything(name):
    with pytest.raises(ConfigError, match=f"model.{name} needs to be 1 or more, got 0"):
        config.read(Classify, overrides=[f"model.{name}=0"])
    assert config.read(Classify, overrides=["model.glimpses=6", f"model.{name}=2"]).model.glimpses == 6


def test_whether_pictures_have_several_labels_may_be_left_open():
    assert config.read(Classify).data.multi_label is None
    assert config.read(Classify, overrides=["data.multi_label=false"]).data.multi_label is False


@pytest.mark.parametrize("setting", ["data.max_question_length=0", "model.hops=0", "model.question_layers=0"])
def test_what_counts_something_of_a_question_is_at_least_one(setting):
    with pytest.raises(ConfigError, match="needs to be 1 or more, got 0"):
        config.read(task.Config, overrides=[setting])


def test_a_batch_has_room_for_as_many_pictures_however_large_they_are_read():
    assert ImageData().budget == 16 * 256 * 256
    assert ImageData(height=240, width=320, batch_size=4).budget == 4 * 240 * 320
    assert ImageData(height=240, width=320, batch_pixels=50_000).budget == 50_000
