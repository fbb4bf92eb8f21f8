"""Settings: the small JSON file that says of what kind a saved tokenizer is."""

import json
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

FORMAT = 1


def write(directory: Path, name: str, kind: str, **more: Any) -> Path:
    """Write the settings of a tokenizer; where they are."""
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"format": FORMAT, "tokens": kind} | more, indent=2) + "\n", encoding="utf-8")
    return path


def read(directory: Traversable, name: str) -> dict[str, Any]:
    """Read what `write` wrote."""
    path = directory / f"{name}.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} needs to be the settings of a tokenizer in JSON, and is not: {error}") from error
    if not isinstance(table, dict) or table.get("format") != FORMAT or not isinstance(table.get("tokens"), str):
        raise ValueError(f"{path} needs to be the settings of a tokenizer, format {FORMAT}")
    return table
