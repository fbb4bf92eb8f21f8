"""Metrics of one training: figures.json beside its model, valid while the model, settings and data are unchanged."""

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


def save_figures(directory: Path, config: Any, beam: int | None, figures: Mapping[str, Any]) -> None:
    """Write the metrics with the digests of all that they depend on."""
    table = {"asked": describe_inputs(config, beam), "model": _digest(directory), "figures": finite(figures)}
    text = json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False)
    io.write(directory / NAME, text.encode() + b"\n")


def load_figures(directory: Path, config: Any, beam: int | None) -> dict[str, Any] | None:
    """Metrics of a finished training; None where its settings, data, model or the beam size have changed."""
    try:
        table = json.loads((directory / NAME).read_text(encoding="utf-8"))
        same = table["asked"] == describe_inputs(config, beam) and table["model"] == _digest(directory)
        return dict(table["figures"]) if same else None
    except (OSError, ValueError, TypeError, KeyError, TrainingError):  # no finished training
        return None


def describe_inputs(config: Any, beam: int | None) -> dict[str, Any]:
    """Inputs of the metrics beside the model: settings, beam size, and digests of the data files."""
    data = config.data
    paths = [Path(file) for path in (data.train, data.valid, data.test) if path is not None for file in files(path)]
    return {
        "config": configuration.plain(config),
        "beam": beam,
        "files": {str(path): _digest_content(path) for path in paths},
    }


def _digest_content(path: Path) -> str:
    """Digest of a file, independent of its path and time; a folder has its modification time."""
    known = path.stat()
    return _digest_file(path, known.st_size, known.st_mtime_ns) if path.is_file() else f"changed {known.st_mtime_ns}"


@cache
def _digest_file(path: Path, size: int, changed: int) -> str:
    """Digest of a file, cached until it changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(directory: Path) -> str:
    return str(manifest.unseal(directory / manifest.NAME)["files"][MODEL])
