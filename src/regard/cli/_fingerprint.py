"""What a journal must be sure of before it goes on: that input, model and settings are those it began with."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor

PIECE = 1 << 20
GZIP = b"\x1f\x8b"


class Source(NamedTuple):
    """The digest of a file, and how many lines it has where they can be counted without reading it as text."""

    digest: str | None
    lines: int | None


def source(path: str | None) -> Source:
    """Of a regular file; a pipe and standard input can be read only once."""
    if path is None or path == "-" or not os.path.isfile(path):  # False, too, where a name is too long
        return Source(None, None)
    digest, lines, last, packed = hashlib.sha256(), 0, b"", False
    with open(path, "rb") as file:
        while data := file.read(PIECE):
            packed = packed or (not last and data.startswith(GZIP))
            digest.update(data)
            lines, last = lines + data.count(b"\n"), data[-1:]
    unfinished = last not in (b"", b"\n")
    return Source(digest.hexdigest(), None if packed or path.endswith(".gz") else lines + unfinished)


def work(
    directory: Path,
    model: "Predictor",
    given: Source,
    files: Mapping[str, str | None],
    **settings: Any,
) -> dict[str, str | None]:
    """Digests of the input, of the model, and of all settings with their files."""
    named = {name: source(path).digest or path for name, path in files.items()}
    table = {**settings, **named, "search": dataclasses.asdict(model.config.search)}
    return {
        "input": given.digest,
        "model": digest_model(directory, model),
        "settings": hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest(),
    }


def digest_model(directory: Path, model: "Predictor") -> str | None:
    """The digest of the weights that were loaded and of the files beside them; of an exported model, that of its graphs.

    A training may publish other weights into the directory at any time, so what its manifest says of them by now counts for
    nothing.
    """
    from regard.manifest import NAME, unseal
    from regard.tasks.retrieve.index import fingerprint
    from regard.training.run_directory import MODEL

    if directory.is_file():
        return source(str(directory)).digest
    if not any(weights.numel() for weights in model.model.parameters()):
        return source(str(directory / NAME)).digest
    beside = {name: digest for name, digest in unseal(directory / NAME)["files"].items() if name != MODEL}
    return hashlib.sha256(json.dumps([fingerprint(model.model), beside], sort_keys=True).encode()).hexdigest()
