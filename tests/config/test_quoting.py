import re

import pytest

from regard.config import quoted, shortened
from regard.config.parameters import read_parameters
from regard.config.quoting import SHOWN
from regard.errors import ConfigError


def test_a_text_is_cut_and_stays_on_one_line():
    assert shortened("a\nb\x1b[31m") == "a b [31m"
    assert shortened("x" * SHOWN) == "x" * SHOWN
    assert shortened("x" * 1000) == "x" * SHOWN + "..."
    assert shortened("abcdef", 3) == "abc..."


def test_a_byte_that_is_not_utf8_is_spelt():
    assert shortened("no\udcff") == r"no\udcff"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1}, "a table of 1"),
        ([1, 2], "a list of 2"),
        ("a\n", r"'a\n'"),
        ("x" * 1000, f"'{'x' * SHOWN}'..."),
        (10**400, "a number of 1,329 bits"),
        (1.5, "1.5"),
    ],
)
def test_a_value_is_quoted_in_few_characters(value, text):
    assert quoted(value) == text


@pytest.mark.parametrize(("key", "text"), [("x" * 5000, f"{'x' * SHOWN}...;"), ("a\n\x1b", "a  ;")])
def test_the_name_of_an_unknown_parameter_is_shortened(key, text):
    with pytest.raises(ConfigError, match=f"^{re.escape('there is no setting model.attention.' + text)}"):
        read_parameters("additive", {key: 1}, "model.attention.", [])
