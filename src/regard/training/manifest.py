"""Manifests: what a directory holds, sealed, so that a changed byte is a known one."""

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from regard.training.errors import DamagedError, RefusedError

NAME = "manifest.json"
FORMAT = 1


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def seal(table: dict[str, Any]) -> bytes:
    """A manifest's bytes: the table, the format, the versions that wrote it, and a check over them all."""
    table = {"format": FORMAT, **table, "versions": versions()}
    return json.dumps({**table, "check": _check(table)}, indent=1, ensure_ascii=False, allow_nan=False).encode()


def unseal(path: Path) -> dict[str, Any]:
    """The table of a manifest. One that was changed is damaged; one of another format is refused."""
    try:
        table = json.loads(path.read_bytes())
        check = table.pop("check")
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing") from error
    except (OSError, ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise DamagedError(f"{path} is not a manifest") from error
    if check != _check(table):
        raise DamagedError(f"{path} was changed after it was written")
    if table.get("format") != FORMAT:
        raise RefusedError(
            f"{path} has format {table.get('format')}, and this version of regard reads format {FORMAT}; "
            f"it was written by regard {table.get('versions', {}).get('regard')}"
        )
    return table


def verified(path: Path, expected: str | None) -> bytes:
    """The content of a file whose digest is known."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path} is missing") from error
    if digest(data) != expected:
        raise DamagedError(f"{path} is not what was written: its SHA-256 differs from the manifest's")
    return data


def versions() -> dict[str, str]:
    """What a later reader may want to know."""
    import torch

    import regard

    return {"regard": regard.__version__, "torch": str(torch.__version__), "python": platform.python_version()}


def _check(table: dict[str, Any]) -> str:
    return digest(json.dumps(table, sort_keys=True, ensure_ascii=True).encode())
