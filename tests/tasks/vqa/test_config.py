"""Settings of visual question answering."""

import pytest

from regard import config
from regard.errors import ConfigError
from regard.tasks.vqa.task import Config


@pytest.mark.parametrize("setting", ["data.max_question_length=0", "model.hops=0", "model.question_layers=0"])
def test_what_counts_something_of_a_question_is_at_least_one(setting):
    with pytest.raises(ConfigError, match="needs to be 1 or more, got 0"):
        config.read(Config, overrides=[setting])


def test_each_column_of_a_table_has_a_setting():
    read = config.read(Config, overrides=["data.image=path", "data.question=asked", "data.answer=said"])
    assert [getattr(read.data, name) for name in read.data.columns] == ["path", "asked", "said"]
