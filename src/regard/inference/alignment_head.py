"""Chosen: the head that speaks for a model, noted in the manifest of its run directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard import manifest
from regard.alignment.heads import Head
from regard.errors import DamagedError
from regard.training.run_directory import RunDirectory

ENTRY = "alignment"


def save_head(directory: Path, head: Head) -> None:
    """Write the choice down; whoever loads the directory from now on aligns by it."""
    with RunDirectory(directory) as run:
        run.note(ENTRY, head._asdict())


def load_head(table: Mapping[str, Any], directory: Path) -> Head:
    """The choice in the manifest of a directory; nothing chosen where none was made."""
    entry: Any = table.get(ENTRY)
    if entry is None:
        return Head()
    kinds = {"attention": str | None, "head": int | None, "shift": bool}
    if (
        not isinstance(entry, dict)
        or entry.keys() != kinds.keys()
        or not all(isinstance(entry[n], k) for n, k in kinds.items())
    ):
        path = directory / manifest.NAME
        raise DamagedError(f"{path} has a chosen head that is none: {entry!r}; choose one again by `regard align --choose`")
    return Head(**entry)
