import dataclasses

from regard.tasks.kinds import text as _text
from regard.tasks.kinds.text import TextConfig
from regard.tasks.kinds.types import TaskConfig, family


def test_a_family_is_found_by_a_config_or_by_its_class():
    assert family(TextConfig) is family(TextConfig()) is _text


def test_all_configs_have_the_same_parts_in_the_same_order():
    names = [each.name for each in dataclasses.fields(TextConfig)]
    assert names == [each.name for each in dataclasses.fields(TaskConfig)] == ["data", "model", "dropout", "train", "search"]
