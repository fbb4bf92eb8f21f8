"""Width of the terminal, and text that is wrapped to it."""

import os
import shutil
import sys
from textwrap import fill

NARROWEST = 40
"""No text is wrapped to less."""


def find_width() -> int | None:
    """Columns of the terminal that standard output is, or of COLUMNS; None for a file or a pipe."""
    if not os.environ.get("COLUMNS", "").isdigit() and not (sys.stdout is not None and sys.stdout.isatty()):
        return None
    return max(NARROWEST, shutil.get_terminal_size().columns)


def wrap(text: str, width: int | None, indent: str = "", hanging: str = "") -> str:
    """A line, wrapped at spaces if it is longer than `width`; lines after the first begin with `hanging`."""
    if width is None:
        return indent + text
    options = {"break_long_words": False, "break_on_hyphens": False}
    return fill(text, width, initial_indent=indent, subsequent_indent=hanging, **options)  # type: ignore[arg-type]
