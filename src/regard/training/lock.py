"""One training per directory. The lock belongs to the process and vanishes with it, however it dies."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from regard.errors import RefusedError

NAME = ".lock"
PAUSE = 0.05
"""Seconds between two looks at a lock that is waited for."""


class Lock:
    """Held while inside `with`; whoever comes second is refused at once."""

    def __init__(self, directory: Path):
        self.path = directory / NAME
        self.handle = -1

    def __enter__(self) -> "Lock":
        self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self.handle, 64).decode(errors="replace").strip()
            os.close(self.handle)
            raise RefusedError(
                f"{self.path.parent} is in use by process {holder or 'unknown'}: wait for it, or choose another directory"
            ) from error
        try:
            os.ftruncate(self.handle, 0)
            os.write(self.handle, f"{os.getpid()}\n".encode())
        except OSError:  # a full disk; without this the lock would outlive the refusal
            os.close(self.handle)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self.handle)


def wait_until_free(directory: Path, seconds: float) -> None:
    """Wait until nobody holds a directory, but no longer than so many seconds; one that is not there is free.

    A worker of a comparison that was killed still saves its training when the next comparison begins.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with open(directory / NAME, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
        except FileNotFoundError:
            return
        except BlockingIOError:
            time.sleep(PAUSE)
