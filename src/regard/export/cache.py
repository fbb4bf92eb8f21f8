"""What an engine made of a model, kept in the run directory until the model changes."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from regard.training import atomic, manifest
from regard.training.errors import DamagedError, RefusedError

FOLDER = "engines"
KEPT = 16
"""How many characters of a manifest's SHA-256 a name holds."""


def kept(run: Path, kind: str, make: Callable[[], Mapping[str, bytes]]) -> Path:
    """The directory of this kind for the model of a run, made where it is missing, damaged or of another model.

    Its name holds the digest of the run's manifest. Those of earlier models go. Where the run cannot be written to, it lies
    among the temporary files until the program ends.
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
        elsewhere = tempfile.mkdtemp(prefix="regard-")
        atexit.register(shutil.rmtree, elsewhere, ignore_errors=True)
        return _put(Path(elsewhere) / name, files)
    for old in home.parent.glob(f"{kind}-*"):
        atomic.remove(old)
    _put(room / name, files)
    try:
        os.rename(room / name, home)
    except OSError:  # somebody else has made it meanwhile
        if not whole(home):
            raise
    shutil.rmtree(room)
    return home


def whole(home: Path) -> bool:
    """Whether a directory is there and every file in it is what was written."""
    try:
        for name, expected in manifest.unseal(home / manifest.NAME)["files"].items():
            manifest.verified(home / name, expected)
    except (DamagedError, KeyError, AttributeError):
        return False
    return True


def _put(home: Path, files: Mapping[str, bytes]) -> Path:
    home.mkdir()
    for name, data in files.items():
        (home / name).write_bytes(data)
    return home
