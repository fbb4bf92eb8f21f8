"""What one training came to: figures.json beside its model, good while the model and what it was asked are the same."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from regard import config as configuration
from regard import io, manifest
from regard.data.table import files
from regard.errors import TrainingError
from regard.training.log import finite
from regard.training.run_directory import MODEL

NAME = "figures.json"


def store(directory: Path, config: Any, beam: int | None, figures: Mapping[str, Any]) -> None:
    """Write the figures, and beside them all that they depend on."""
    table = {"asked": asked(config, beam), "model": _digest(directory), "figures": finite(figures)}
    text = json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False)
    io.write(directory / NAME, text.encode() + b"\n")


def stored(directory: Path, config: Any, beam: int | None) -> dict[str, Any] | None:
    """The figures of a training that ended, where nothing has changed since: its settings, its data, its model, the beam."""
    try:
        table = json.loads((directory / NAME).read_text(encoding="utf-8"))
        same = table["asked"] == asked(config, beam) and table["model"] == _digest(directory)
        return dict(table["figures"]) if same else None
    except (OSError, ValueError, TypeError, KeyError, TrainingError):  # none that ended: it is made
        return None


def asked(config: Any, beam: int | None) -> dict[str, Any]:
    """What figures depend on beside the model: settings, the beam, and what is in the files of data."""
    data = config.data
    paths = [Path(each) for path in (data.train, data.valid, data.test) if path is not None for each in files(path)]
    return {"config": configuration.plain(config), "beam": beam, "files": {str(path): _content(path) for path in paths}}


def _content(path: Path) -> str:
    """The same wherever and whenever a file was copied; a folder goes by its time."""
    known = path.stat()
    return _read(path, known.st_size, known.st_mtime_ns) if path.is_file() else f"changed {known.st_mtime_ns}"


@cache
def _read(path: Path, size: int, changed: int) -> str:
    """Read once for all trainings, unless it changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(directory: Path) -> str:
    return str(manifest.unseal(directory / manifest.NAME)["files"][MODEL])
