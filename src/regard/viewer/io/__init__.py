"""A trace in one file, `name.attn.safetensors`: the arrays, and a manifest that says what they are.

Any tool that opens safetensors opens it; the manifest is JSON in the metadata, described by `schema.json`. Reading maps the
file, so a large one opens at once. Nothing in a file can run: there is no pickle, and every claim is held against the file.
"""

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from regard.viewer.io import container
from regard.viewer.io.check import check
from regard.viewer.io.container import Place
from regard.viewer.io.deserialise import Rebuild
from regard.viewer.io.errors import TraceError
from regard.viewer.io.manifest import FORMAT, VERSION, describe
from regard.viewer.io.schema import fault
from regard.viewer.trace import Trace

SUFFIX = ".attn.safetensors"
THOROUGH = 64 << 20
"""Files of up to so many bytes are checked to the last sum; of larger ones only that every value is a number."""


def save(trace: Trace, path: str | PathLike[str], *, exact: bool = True) -> Path:
    """Check a trace and write it, in the place of a file that may stand there; gives back the path.

    Weights are stored in 8 bits and, unless `exact` is False, as they are. Without them the file is a third as large, and
    what is read is at most sqrt(w) / 255 away.
    """
    check(trace)
    goal = Path(path)
    if not goal.name.endswith(".safetensors"):
        raise TraceError(f"a trace is written to a file called something{SUFFIX}, got {goal.name!r}")
    if not goal.parent.is_dir():
        raise TraceError(f"cannot write {goal}: there is no directory {goal.parent}")
    manifest, arrays = describe(trace, exact=exact)
    container.write(goal, arrays, {"format": FORMAT, "manifest": json.dumps(manifest, allow_nan=False, default=_plain)})
    return goal


def load(path: str | PathLike[str]) -> Trace:
    """Open a trace. Its arrays are views of the file and cannot be written to."""
    place = Path(path)
    arrays, metadata = container.read(_require_file(place))
    try:
        trace = Rebuild(arrays).trace(manifest_of(metadata))
        check(trace, quick=sum(array.nbytes for array in arrays.values()) > THOROUGH)
    except TraceError as error:
        raise TraceError(f"{place}: {error}") from None
    return trace


def offsets(path: str | PathLike[str]) -> dict[str, Place]:
    """Offsets of the arrays of a trace in its file: type, shape, first byte and end."""
    return container.offsets(_require_file(Path(path)))


def manifest_of(metadata: dict[str, str]) -> dict[str, Any]:
    """The manifest in a file's metadata, brought to today's version and held to the schema."""
    if "manifest" not in metadata:
        raise TraceError("a safetensors file without a manifest in its metadata, so it is no trace; trace.save writes one")
    manifest = container.strict_json(metadata["manifest"], "the manifest")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        file_format = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise TraceError(f"the manifest's format must be {FORMAT!r}, got {str(file_format)[:60]!r}")
    broken = fault(upgrade(manifest))
    if broken:
        raise TraceError(f"the manifest does not follow the schema: {broken}")
    return manifest


def upgrade(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of any version up to today's, as today's; the manifest itself is changed."""
    version = manifest.get("version")
    if type(version) is not int or version < 0:
        raise TraceError(f"the manifest's version must be a whole number, got {version!r}")
    if version > VERSION:
        raise TraceError(
            f"written by a newer regard, in version {version} of the format; this one reads up to {VERSION}: upgrade"
        )
    for older in range(version, VERSION):
        UPGRADES[older](manifest)
        manifest["version"] = older + 1
    return manifest


def _from_0(manifest: dict[str, Any]) -> None:
    """Version 0 knew neither films of training nor notes."""
    manifest.setdefault("training", [])
    manifest.setdefault("notes", [])


UPGRADES: dict[int, Callable[[dict[str, Any]], None]] = {0: _from_0}


def _plain(value: Any) -> Any:
    """A number of numpy's as one of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TraceError(f"a manifest holds texts and numbers, got {value!r}, a {type(value).__name__}")


def _require_file(path: Path) -> Path:
    if not path.is_file():
        raise TraceError(f"there is no file {path}" if not path.exists() else f"{path} is not a file; a trace is one file")
    return path
