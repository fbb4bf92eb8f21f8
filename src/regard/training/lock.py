"""One training per directory. The lock belongs to the process and vanishes with it, however it dies."""

import fcntl
import os
from pathlib import Path
from types import TracebackType

from regard.training.errors import RefusedError

NAME = ".lock"


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
