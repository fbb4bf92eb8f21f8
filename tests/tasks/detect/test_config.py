"""Settings of object detection."""

import pytest

from regard import config
from regard.errors import ConfigError
from regard.tasks.detect.task import Config


@pytest.mark.parametrize("name", ["layers", "queries"])
def test_a_detector_has_one_or_more_layers_and_queries(name):
    with pytest.raises(ConfigError, match=f"model.{name} needs to be 1 or more, got 0"):
        config.read(Config, overrides=[f"model.{name}=0"])


def test_denoising_can_be_turned_off():
    assert config.read(Config, overrides=["model.denoising_groups=0"]).model.denoising_groups == 0


def test_a_format_of_boxes_is_one_of_three():
    with pytest.raises(ConfigError, match=r"data\.box_format needs to be xyxy, xywh or cxcywh, got 'yxyx'"):
        config.read(Config, overrides=["data.box_format=yxyx"])
    assert config.read(Config, overrides=["data.box_format=xywh"]).data.box_format == "xywh"
