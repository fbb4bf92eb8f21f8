"""Check of the entries of a run directory before a training resumes in it: files and directories of its own alone.

A training writes there. Of a directory that somebody sent, a link in the place of the log or of a checkpoint would lead its
writing elsewhere, and a pipe would let it wait for ever.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from regard.errors import RefusedError

FILES = ("config.toml", "manifest.json", "model.safetensors", "log.jsonl", "metrics.json", "state.safetensors", ".lock")
"""Names of files; no directory may have one."""


def check_entries(directory: Path) -> None:
    """Raise RefusedError for a link that leads out of a run directory, and for what is neither file nor directory."""
    root = os.path.realpath(directory)
    for entry in _entries(directory):
        inside = os.path.realpath(entry.path)
        if entry.is_symlink() and not inside.startswith(root + os.sep):
            why = f"is a link that leads out of {directory}"
        elif (mode := _mode(entry)) is None or stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and entry.name not in FILES):
            continue
        else:
            why = "is no regular file"
        raise RefusedError(
            f"{entry.path} {why}, and a training does not write there: remove it, or train into another directory"
        )


def _entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    """List the entries of a run directory, and of its checkpoints."""
    checkpoints = directory / "checkpoints"
    with os.scandir(directory) as entries:
        yield from entries
    for folder in (checkpoints, *checkpoints.glob("*")):
        if folder.is_dir():
            with os.scandir(folder) as entries:
                yield from entries


def _mode(entry: "os.DirEntry[str]") -> int | None:
    """The kind of file that an entry leads to; None where it leads to nothing."""
    try:
        return entry.stat().st_mode
    except OSError:
        return None
