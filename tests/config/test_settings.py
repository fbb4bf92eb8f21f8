import re
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Literal, get_args, get_origin

import pytest

from regard import config, tasks
from regard.config import settings
from regard.errors import ConfigError

PARTS = [each for each in vars(settings).values() if is_dataclass(each) and fields(each)]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_cannot_be_changed_and_equals_another_of_the_same_values(part):
    made = part()
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(part)[0].name, None)
    assert made == part()
    assert hash(made) == hash(part())


@pytest.mark.parametrize("part", PARTS)
def test_a_default_is_one_of_its_choices(part):
    for each in fields(part):
        choices = [get_args(kind) for kind in (each.type, *get_args(each.type)) if get_origin(kind) is Literal]
        assert not choices or getattr(part(), each.name) in (*choices[0], None), each.name


def test_every_part_is_here():
    assert {each.__name__ for each in PARTS} == {
        "AttentionPart",
        "Data",
        "Dropout",
        "Model",
        "EncoderDecoder",
        "OutputPart",
        "Search",
        "Train",
    }


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("length_penalty=1e308", "length_penalty needs to be 10 or less, got 1e+308"),
        ("coverage_penalty=1e308", "coverage_penalty needs to be 1,000,000 or less, got 1e+308"),
        ("diversity_penalty=1e7", "diversity_penalty needs to be 1,000,000 or less, got 10000000.0"),
        ("max_length_ratio=1e308", "max_length_ratio needs to be 1,048,576 or less, got 1e+308"),
    ],
)
def test_a_penalty_that_overflows_is_refused(override, text):
    with pytest.raises(ConfigError, match=f"^{re.escape(f'search.{text}')}$"):
        config.read(tasks.find("reverse").Config, overrides=[f"search.{override}"])
