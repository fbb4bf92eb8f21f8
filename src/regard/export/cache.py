"""What an engine made of a model, kept in the run directory until the model changes."""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from regard.training import atomic, manifest
from regard.training.errors import DamagedError, RefusedError

FOLDER = "engines"
KEPT = 16
"""How many characters of a manifest's SHA-256 a name holds."""


def kept(run: Path, kind: str, make: Callable[[], Mapping[str, bytes]]) -> Path:
    """The directory of this kind for the model of a run, made where it is missing, damaged or of another model.

    Its name holds the digest of the run's manifest. It appears whole or not at all, whoever else makes it at the same time;
    then those of earlier models go. Where the run cannot be written to, it lies among the temporary files until the program
    ends.
    """
    if run.is_file():
        raise RefusedError(f"{run} is an exported model, which one engine alone runs: leave --engine out, or take its run")
    name = f"{kind}-{manifest.digest((run / manifest.NAME).read_bytes())[:KEPT]}"
    home = run / FOLDER / name
    if whole(home):
        return home
    files = dict(make())
    files[manifest.NAME] = manifest.seal({"files": {each: manifest.digest(data) for each, data in files.items()}})
    try:
        home.parent.mkdir(exist_ok=True)
        room = Path(tempfile.mkdtemp(dir=home.parent, prefix=atomic.TEMPORARY))
    except OSError:
        room = Path(tempfile.mkdtemp(prefix="regard-"))
        atexit.register(shutil.rmtree, room, ignore_errors=True)
        return _put(room, name, files, room)
    try:
        made = _put(room, name, files, home)
        with _one_at_a_time(home.parent):
            if not whole(home):
                _replace(made, home)
            for old in home.parent.glob(f"{kind}-*"):
                if old != home:
                    atomic.remove(old)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return home


def whole(home: Path) -> bool:
    """Whether a directory is there and every file in it is what was written."""
    try:
        for name, expected in manifest.unseal(home / manifest.NAME)["files"].items():
            manifest.verified(home / name, expected)
    except (DamagedError, KeyError, AttributeError):
        return False
    return True


def _put(room: Path, name: str, files: Mapping[str, bytes], home: Path) -> Path:
    """Write the files on their way home; where the disk is full, the room goes with what it holds of them."""
    with atomic.room(home, sum(map(len, files.values())), room):
        (room / name).mkdir()
        for each, data in files.items():
            (room / name / each).write_bytes(data)
    return room / name


def _replace(made: Path, home: Path) -> None:
    """Give it its name, which something damaged may have."""
    atomic.remove(home)
    os.rename(made, home)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait for whoever is changing what lies in a folder; a process that dies waits for nobody and holds nobody up."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
