"""Manifests: what a directory holds, sealed, so that a changed byte is a known one."""

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from regard.errors import DamagedError, RefusedError
from regard.regular_files import MEMORY, read_regular

NAME = "manifest.json"
FORMAT = 2
"""2: settings have the names of the field."""
LIMIT = 16 * 2**20
"""The most bytes of a manifest."""
CHANGED = "{} is not what was written: its SHA-256 differs from the manifest's"


def digest(*parts: bytes | bytearray) -> str:
    """SHA-256 of the parts, one after the other, in hexadecimal."""
    sha256 = hashlib.sha256()
    for part in parts:
        sha256.update(part)
    return sha256.hexdigest()


def seal(table: dict[str, Any]) -> bytes:
    """A manifest's bytes: the table, the format, the versions that wrote it, and a check over them all."""
    table = {"format": FORMAT, **table, "versions": versions()}
    return json.dumps({**table, "check": _check(table)}, indent=1, ensure_ascii=False, allow_nan=False).encode()


def unseal(path: Path) -> dict[str, Any]:
    """The table of a manifest. One that was changed is damaged; one of another format is refused."""
    return parse(read_regular(path, LIMIT), path)


def parse(data: bytes, path: Path) -> dict[str, Any]:
    """The table in the bytes of a manifest."""
    try:
        table = json.loads(data)
        check = table.pop("check")
        wanted = _check(table)
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise DamagedError(f"{path} is not a manifest") from error
    if check != wanted:
        raise DamagedError(f"{path} was changed after it was written")
    if table.get("format") != FORMAT:
        versions = table.get("versions")
        raise RefusedError(
            f"{path} has format {table.get('format')}, and this version of regard reads format {FORMAT}; "
            f"it was written by regard {versions.get('regard') if isinstance(versions, dict) else 'of another version'}: "
            "train again, or open it with the version that wrote it"
        )
    return dict(table)


def verified(path: Path, expected: str | None, limit: int = MEMORY, root: Path | None = None) -> bytes:
    """The content of a file whose digest is known."""
    data = read_regular(path, limit, root)
    if digest(data) != expected:
        raise DamagedError(CHANGED.format(path))
    return data


def versions() -> dict[str, str]:
    """Versions of regard, torch and Python, for the record."""
    import torch

    import regard

    return {"regard": regard.__version__, "torch": str(torch.__version__), "python": platform.python_version()}


def _check(table: dict[str, Any]) -> str:
    return digest(json.dumps(table, sort_keys=True, ensure_ascii=True).encode())
