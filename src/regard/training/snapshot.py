"""Snapshots: the files of a run directory at one instant, each read once and checked against one manifest.

A training may publish at any time while somebody reads. Files are exchanged by renaming, and the manifest names the new ones
before the first of them appears: a file that does not fit a manifest was published later, and the manifest has changed by
then, or is damaged. `retry_on_publish` tells the two apart.
"""

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from regard import manifest
from regard.errors import DamagedError, RefusedError
from regard.regular_files import MEMORY, SMALL, read_regular

MOST = 1000
"""The most files that a manifest may name."""
LARGE = {".onnx": 2**31, ".safetensors": MEMORY}
"""The most bytes of graphs, which protobuf sets, and of weights; all other files share what SMALL says."""
PUBLISHES = 10
"""Maximum number of repeated readings, each after a training has published during the one before."""

Contents = TypeVar("Contents")


class Snapshot(NamedTuple):
    """A run directory as one manifest describes it."""

    path: Path
    table: dict[str, Any]
    files: dict[str, bytes]
    """Their contents by name, without those that were left out."""

    def digests(self, name: str) -> tuple[str | None, ...]:
        """The SHA-256 that a file may have: the one it had, and the one it is about to have."""
        return tuple(self.table[kind].get(name) for kind in ("files", "pending") if name in self.table[kind])

    @property
    def names(self) -> set[str]:
        """Every file that the manifest names."""
        return {*self.table["files"], *self.table["pending"]}

    @property
    def folder(self) -> "MemoryFolder":
        """Temporary folder with links to these files, for code that reads a folder."""
        return MemoryFolder(self.path, self.files)


@dataclass(frozen=True)
class MemoryFolder(Traversable):
    """A folder, or a file in it, whose contents are bytes in memory; `origin` is where they came from."""

    origin: Path
    files: Mapping[str, bytes]
    at: str = ""

    @property
    def name(self) -> str:
        return Path(self.at).name or self.origin.name

    def __str__(self) -> str:
        return str(self.origin / self.at)

    def joinpath(self, *parts: str | PathLike[str]) -> "MemoryFolder":
        return MemoryFolder(self.origin, self.files, "/".join(filter(None, (self.at, *map(str, parts)))))

    def __truediv__(self, part: str | PathLike[str]) -> "MemoryFolder":
        return self.joinpath(part)

    def is_file(self) -> bool:
        return self.at in self.files

    def is_dir(self) -> bool:
        return not self.is_file()

    def iterdir(self) -> Iterator["MemoryFolder"]:
        prefix = f"{self.at}/" if self.at else ""
        inside = (name.removeprefix(prefix).partition("/")[0] for name in self.files if name.startswith(prefix))
        return map(self.joinpath, dict.fromkeys(inside))

    def read_bytes(self) -> bytes:
        if not self.is_file():
            raise DamagedError(f"{self} is missing: no manifest names it")
        return self.files[self.at]

    def read_text(self, encoding: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8")

    def open(self, mode: str = "r", *_: Any, encoding: str | None = None, **__: Any) -> Any:
        return io.BytesIO(self.read_bytes()) if "b" in mode else io.StringIO(self.read_text(encoding))


def verify(path: Path) -> dict[str, bytes]:
    """The files of a run directory by name, each checked against the manifest."""
    return retry_on_publish(path, lambda sealed: read_snapshot(path, sealed)).files


def retry_on_publish(path: Path, read: Callable[[bytes], Contents]) -> Contents:
    """Read a directory by the bytes of its manifest, and again if they change while what is read does not fit them."""
    sealed = _sealed(path)
    for _ in range(PUBLISHES):
        try:
            return read(sealed)
        except (DamagedError, RefusedError):
            if (now := _sealed(path)) == sealed:
                raise
            sealed = now
    return read(sealed)


def read_snapshot(path: Path, sealed: bytes, omit: Collection[str] = ()) -> Snapshot:
    """The files that a manifest names, but for those to omit, each read once and checked."""
    table = files_in(manifest.parse(sealed, path / manifest.NAME), path)
    snapshot, room = Snapshot(path, table, {}), SMALL
    for name in dict.fromkeys((*table["files"], *table["pending"])):
        if name in omit:
            continue
        large = LARGE.get(Path(name).suffix)
        data = read_regular(path / name, room if large is None else large, path)
        room -= len(data) if large is None else 0
        if manifest.digest(data) not in snapshot.digests(name):
            raise DamagedError(manifest.CHANGED.format(path / name))
        snapshot.files[name] = data
    return snapshot


def files_in(table: dict[str, Any], path: Path) -> dict[str, Any]:
    """The table of a manifest whose files are names inside the directory, each with a digest."""
    for kind in ("files", "pending"):
        entries = table.get(kind)
        if not isinstance(entries, dict) or not all(isinstance(text, str) for text in entries.values()):
            raise DamagedError(f"{path}: its manifest has no table of {kind}")
        if len(entries) > MOST:
            raise DamagedError(f"{path}: its manifest names {len(entries):,} files, and a model has at most {MOST:,}")
        for name in entries:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise DamagedError(f"{path}: its manifest names {name!r}, which lies outside")
    return table


def _sealed(path: Path) -> bytes:
    return read_regular(path / manifest.NAME, manifest.LIMIT, path)
