from pathlib import Path

import pytest

from regard import config
from regard.config import ImageData
from regard.errors import ConfigError
from regard.tasks.caption.task import Config


def test_settings_of_pictures_are_read_and_written_like_any_others():
    read = config.read(Config, overrides=["data.height=32", "model.encoder=vit", "dropout.encoder=0.1"])
    assert (read.data.height, read.model.encoder, read.dropout.encoder) == (32, "vit", 0.1)
    assert config.check(Config, config.parse_text(config.write(read), Path("config.toml"))) == read


def test_an_encoder_of_texts_is_none_of_pictures():
    with pytest.raises(ConfigError, match=r"model\.encoder needs to be resnet, densenet or vit, got 'recurrent'"):
        config.read(Config, overrides=["model.encoder=recurrent"])


@pytest.mark.parametrize("setting", ["data.height=0", "data.batch_pixels=0", "model.stride=0"])
def test_what_counts_something_is_at_least_one(setting):
    with pytest.raises(ConfigError, match="needs to be 1 or more, got 0"):
        config.read(Config, overrides=[setting])


def test_a_batch_has_room_for_as_many_pictures_however_large_they_are_read():
    assert ImageData().budget == 16 * 256 * 256
    assert ImageData(height=240, width=320, batch_size=4).budget == 4 * 240 * 320
    assert ImageData(height=240, width=320, batch_pixels=50_000).budget == 50_000
