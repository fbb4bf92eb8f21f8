"""Settings of classification."""

import pytest

from regard import config
from regard.errors import ConfigError
from regard.tasks.classify.task import Config


@pytest.mark.parametrize("name", ["glimpse_size", "glimpse_scales", "episodes", "eval_episodes"])
def test_glimpses_have_one_or_more_of_everything(name):
    with pytest.raises(ConfigError, match=f"model.{name} needs to be 1 or more, got 0"):
        config.read(Config, overrides=[f"model.{name}=0"])
    assert config.read(Config, overrides=["model.glimpses=6", f"model.{name}=2"]).model.glimpses == 6


def test_whether_pictures_have_several_labels_may_be_left_open():
    assert config.read(Config).data.multi_label is None
    assert config.read(Config, overrides=["data.multi_label=false"]).data.multi_label is False
