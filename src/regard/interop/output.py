"""What an export makes, a directory or a file: all of it or nothing, and never over something else."""

import os
from collections.abc import Mapping
from pathlib import Path

from regard import io
from regard.errors import RefusedError


def free(out: Path) -> None:
    """Raise where something lies in the way or nothing can be written; told before anything is computed."""
    with io.room(out):
        if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
            raise RefusedError(f"{out} is there already and is not empty: choose another name, or remove it first")
    io.check_place(out)


def put(out: Path, files: Mapping[str, bytes]) -> int:
    """Write the files into a directory; how many bytes they are."""
    free(out)
    io.write_directory(out, files)
    return sum(map(len, files.values()))


def put_file(out: Path, data: bytes) -> int:
    """Write a file; how many bytes it has."""
    free(out)
    io.write(out, data)
    return len(data)
