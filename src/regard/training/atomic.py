"""Write so that a reader, or the next start, finds the old or the new and never something between.

    write to .tmp-*  ->  fsync the file  ->  fsync its directory  ->  rename  ->  fsync the parent

A process may be killed between any two instructions of this, and the power may fail.
"""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from regard.training.errors import UnwritableError

TEMPORARY = ".tmp-"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write(path: Path, data: bytes) -> None:
    """A file with this content."""
    temporary = path.with_name(TEMPORARY + path.name)
    with room(path, len(data), temporary):
        _put(temporary, data)
        os.replace(temporary, path)
        flush(path.parent)


def write_directory(path: Path, files: Mapping[str, bytes]) -> None:
    """A directory with these files, in the place of one that may stand there."""
    temporary = path.with_name(TEMPORARY + path.name)
    with room(path, sum(map(len, files.values())), temporary):
        remove(temporary)
        temporary.mkdir()
        for name, data in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            _put(temporary / name, data)
        flush(temporary)
        if path.exists():
            remove(path)
        os.rename(temporary, path)
        flush(path.parent)


def remove(path: Path) -> None:
    """Take a file or directory away: first its name, then its content, so that no half of it is ever taken for the whole."""
    if not path.exists():
        return
    doomed = path if path.name.startswith(TEMPORARY) else path.with_name(f"{TEMPORARY}old-{path.name}")
    if doomed is not path:
        remove(doomed)
        os.rename(path, doomed)
    shutil.rmtree(doomed) if doomed.is_dir() else doomed.unlink()


def sweep(directory: Path) -> None:
    """Clear away what a killed process left half-written."""
    for path in directory.glob(f"{TEMPORARY}*"):
        remove(path)


def flush(directory: Path) -> None:
    """Make a directory's entries last."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def room(path: Path, size: int | None = None, temporary: Path | None = None) -> Iterator[None]:
    """A full disk becomes one sentence, and gets back what the half-written file took."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        if temporary is not None:
            remove(temporary)
        free = shutil.disk_usage(path.parent).free
        needed = "more than is there" if size is None else f"{size:,} bytes"
        raise UnwritableError(
            f"no room to write {path}: it needs {needed} and {free:,} are free ({os.strerror(error.errno)}). "
            "What was saved before is whole; make room and start again to go on from there"
        ) from error


def _put(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
