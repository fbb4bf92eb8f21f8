"""Cache of exported engines (ONNX, CTranslate2) of run directories, in the cache folder of the user.

They are never in the run directory, which may come from others: files of the cache are trusted.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import regard
from regard import io, manifest
from regard.errors import DamagedError, RefusedError
from regard.user_cache import cache_folder, is_private

KIND = "engines"
DAY = 24 * 60 * 60
LIMIT = 4 * 2**30
"""Bytes that the engines of all models may take; beyond it the least recently used go."""


def cache_engine(run: Path, kind: str, export: Callable[[], Mapping[str, bytes]]) -> Path:
    """The cached export of a run, written where it is missing or damaged.

    Its name has the digest of the manifest of the run and of the version of regard, so that each state of a model has its
    own. It is written atomically, also with concurrent writers. Every file is verified against its digest each time.
    """
    if run.is_file():
        raise RefusedError(f"{run} is an exported model, which one engine alone runs: leave --engine out, or take its run")
    model = (run / manifest.NAME).read_bytes()
    cache = cache_folder(KIND)
    home = cache / f"{kind}-{manifest.digest(model + regard.__version__.encode())}"
    if not is_valid(home):
        files = {name: data for name, data in export().items() if name != manifest.NAME}  # an export's own is replaced
        sealed = manifest.seal({"files": {name: manifest.digest(data) for name, data in files.items()}})
        _put(home, {**files, manifest.NAME: sealed})
        with _one_at_a_time(cache):
            remove_least_recent(cache, home)
    with suppress(OSError):  # where another program is just replacing it
        os.utime(home)
    return home


def is_valid(home: Path) -> bool:
    """True for a directory that exists, is private, and whose files have their digests."""
    try:
        if not is_private(home):
            return False
        for name, expected in manifest.unseal(home / manifest.NAME)["files"].items():
            manifest.verified(home / name, expected)
    except (OSError, DamagedError, RefusedError, KeyError, AttributeError):
        return False
    return True


def remove_least_recent(cache: Path, newest: Path, limit: int = LIMIT) -> None:
    """Remove the engines that were not used for longest until the others take no more than `limit` bytes.

    The newest stays, however large it is.
    """
    others = sorted((folder for folder in cache.iterdir() if folder != newest), key=_used, reverse=True)
    room = limit - _size(newest)
    for other in others:
        unfinished = other.name.startswith(io.TEMPORARY)  # another program's, or left by one that was killed
        room -= 0 if unfinished else _size(other)
        if time.time() - _used(other) > DAY if unfinished else room < 0:
            io.remove(other)


def _used(home: Path) -> float:
    """Time of last use of an engine; 0 where it was removed meanwhile."""
    with suppress(OSError):
        return home.stat().st_mtime
    return 0.0


def _size(home: Path) -> int:
    with suppress(OSError):
        return sum(file.stat().st_size for file in home.iterdir())
    return 0


def _put(home: Path, files: Mapping[str, bytes]) -> None:
    """Write the files beside their place and rename; where the disk is full, what was written of them is removed."""
    room = Path(tempfile.mkdtemp(dir=home.parent, prefix=io.TEMPORARY))
    try:
        with io.room(home, sum(map(len, files.values())), room):
            for name, data in files.items():
                (room / name).write_bytes(data)
        with _one_at_a_time(home.parent):
            if not is_valid(home):
                io.remove(home)
                os.rename(room, home)
    finally:
        shutil.rmtree(room, ignore_errors=True)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Lock of a folder, released when the process ends."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
