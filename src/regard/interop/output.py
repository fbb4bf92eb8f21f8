"""Output of an export, a directory or a file: written atomically, and never over existing files."""

import os
from collections.abc import Mapping
from pathlib import Path

from regard import io
from regard.errors import RefusedError


def check_free(out: Path) -> None:
    """Raise for an existing or unwritable path, before anything is computed."""
    with io.room(out):
        if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
            raise RefusedError(f"{out} is there already and is not empty: choose another name, or remove it first")
    io.check_place(out)


def write_directory(out: Path, files: Mapping[str, bytes]) -> int:
    """Write files into a directory; returns their size in bytes."""
    check_free(out)
    io.write_directory(out, files)
    return sum(map(len, files.values()))


def write_file(out: Path, data: bytes) -> int:
    """Write a file; returns its size in bytes."""
    check_free(out)
    io.write(out, data)
    return len(data)
