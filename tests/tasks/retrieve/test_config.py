"""Settings of retrieval."""

import pytest

from regard import config
from regard.errors import ConfigError
from regard.tasks.retrieve.task import Config


@pytest.mark.parametrize("name", ["text_layers", "projection_size", "rerank_top_k"])
def test_a_dual_encoder_has_one_or_more_of_everything(name):
    with pytest.raises(ConfigError, match=f"model.{name} needs to be 1 or more, got 0"):
        config.read(Config, overrides=[f"model.{name}=0"])


def test_re_ranking_can_be_turned_off():
    assert config.read(Config, overrides=["model.reranking_layers=0"]).model.reranking_layers == 0


def test_a_share_of_words_is_below_one():
    with pytest.raises(ConfigError, match=r"dropout\.words needs to be"):
        config.read(Config, overrides=["dropout.words=1.5"])
