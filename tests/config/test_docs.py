from dataclasses import dataclass, field
from typing import Literal

import pytest

from regard import registry, tasks
from regard.config import everything
from regard.config.docs import Setting, describe_settings, list_choices, read_meanings


@dataclass(frozen=True)
class Part:
    """Which of them, by its name."""

    name: str = "a"
    size: int | None = None
    """How large;
    None: as it comes."""


@dataclass(frozen=True)
class Parent:
    way: Literal["there", "back"] | None = None
    """Where to."""
    pace: int = 1
    """How fast."""


@dataclass(frozen=True)
class Whole(Parent):
    pace: int = 2
    """Twice as fast."""
    plain: bool = False
    part: Part = field(default_factory=Part)


def test_every_setting_has_its_values_and_what_is_said_of_it():
    assert list(describe_settings(Whole)) == [
        Setting("way", ("there", "back"), "Where to."),
        Setting("pace", (), "Twice as fast."),
        Setting("plain", (), ""),
        Setting("part.name", (), "Which of them, by its name."),
        Setting("part.size", (), "How large; None: as it comes."),
    ]


def test_values_are_those_of_a_setting_that_is_one_of_a_few_words():
    assert list_choices(Literal["a", "b"] | None) == ("a", "b")
    assert list_choices(int | None) == ()


def test_a_class_inherits_what_it_does_not_say_anew():
    assert read_meanings(Whole) == {"way": "Where to.", "pace": "Twice as fast."}


@pytest.mark.parametrize("task", registry.names("tasks"))
def test_every_setting_of_a_task_is_described(task):
    config = tasks.find(task).Config
    found = list(describe_settings(config))
    assert [each.path for each in found] == everything(config)
    assert [each.path for each in found if not each.meaning] == []
