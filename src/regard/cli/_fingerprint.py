"""Fingerprint of a predict job: digests of its input, model and settings, which a resumed journal must match."""

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


class FileDigest(NamedTuple):
    """Digest of a file, and its number of lines where they can be counted without decompression."""

    digest: str | None
    lines: int | None


def digest_file(path: str | None) -> FileDigest:
    """Digest a regular file; a pipe or standard input, which can be read only once, has none."""
    if path is None or path == "-" or not os.path.isfile(path):  # False, too, where a name is too long
        return FileDigest(None, None)
    digest, lines, last, packed = hashlib.sha256(), 0, b"", False
    with open(path, "rb") as file:
        while data := file.read(PIECE):
            packed = packed or (not last and data.startswith(GZIP))
            digest.update(data)
            lines, last = lines + data.count(b"\n"), data[-1:]
    unfinished = last not in (b"", b"\n")
    return FileDigest(digest.hexdigest(), None if packed or path.endswith(".gz") else lines + unfinished)


def digest_job(
    directory: Path, model: "Predictor", source_file: FileDigest, files: Mapping[str, str | None], **settings: Any
) -> dict[str, str | None]:
    """Digests of the input, the model, and all settings with their files."""
    named = {name: digest_file(path).digest or path for name, path in files.items()}
    table = {**settings, **named, "search": dataclasses.asdict(model.config.search)}
    return {
        "input": source_file.digest,
        "model": digest_model(directory, model),
        "settings": hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest(),
    }


def digest_model(directory: Path, model: "Predictor") -> str | None:
    """The digest of the weights that were loaded and of the files beside them; of an exported model, that of its graphs.

    A training may publish other weights into the directory at any time, so the manifest is not used for them.
    """
    from regard.manifest import NAME, unseal
    from regard.tasks.retrieve.index import fingerprint
    from regard.training.run_directory import MODEL

    if directory.is_file():
        return digest_file(str(directory)).digest
    if not any(weights.numel() for weights in model.model.parameters()):
        return digest_file(str(directory / NAME)).digest
    beside = {name: digest for name, digest in unseal(directory / NAME)["files"].items() if name != MODEL}
    return hashlib.sha256(json.dumps([fingerprint(model.model), beside], sort_keys=True).encode()).hexdigest()
