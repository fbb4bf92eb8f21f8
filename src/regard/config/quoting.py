"""Keys and values from outside as an error quotes them: short, on one line, whatever their size and characters."""

from collections.abc import Mapping
from typing import Any

SHOWN = 80
"""The most characters of a key or a value that an error quotes."""


def quoted(value: Any) -> str:
    """A value from outside as an error quotes it: short, on one line, whatever its size and depth."""
    if isinstance(value, Mapping | list):
        return f"{'a table' if isinstance(value, Mapping) else 'a list'} of {len(value):,}"
    if isinstance(value, str):
        return repr(value[:SHOWN]) + "..." * (len(value) > SHOWN)
    if isinstance(value, int) and value.bit_length() > 4 * SHOWN:
        return f"a number of {value.bit_length():,} bits"
    return shortened(repr(value))


def shortened(text: str, most: int = SHOWN) -> str:
    """A text on one line, cut where it is longer; a byte of a name that is not UTF-8 is spelt `\\udcff`."""
    line = "".join(map(_printable, text[: most + 1]))
    return line if len(text) <= most else f"{line[:most]}..."


def _printable(letter: str) -> str:
    """A character that may be printed, in place of this one."""
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):x}" if "\ud800" <= letter <= "\udfff" else " "
