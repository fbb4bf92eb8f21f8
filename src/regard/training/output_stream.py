"""Standard error whose reader may go away: `| head -1`, a closed terminal. A training then has work to save first."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

LOST = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Error codes of writing to a stream that has lost its reader."""


class Stream:
    """A text stream that never fails: once its reader is gone it calls `lost`, and from then on drops what is written.

    Output that cannot be written for another reason, such as a full disk behind `2> FILE`, is dropped without more ado: the
    log of a training has the same figures.
    """

    def __init__(self, stream: Any, lost: Callable[[], None]):
        self.stream, self.lost, self.open = stream, lost, True

    def write(self, text: str) -> int:
        """Write to whoever reads."""
        self._attempt(self.stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Hand over what is buffered."""
        self._attempt(self.stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _attempt(self, call: Callable[..., Any], *arguments: str) -> None:
        if not self.open:
            return
        try:
            call(*arguments)
        except OSError as error:
            if error.errno in LOST:
                self._close()
        except ValueError:
            if not getattr(self.stream, "closed", False):  # such as a character that the encoding lacks
                raise
            self._close()

    def _close(self) -> None:
        self.open = False
        with suppress(OSError, ValueError, AttributeError):  # what is still buffered would fail again as the process ends
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.stream.fileno())
            os.close(null)
        self.lost()


@contextmanager
def guarded(lost: Callable[[], None]) -> Iterator[None]:
    """Inside, standard error is a stream that never fails; warnings go there too."""
    before = sys.stderr
    if before is not None:
        sys.stderr = Stream(before, lost)
    try:
        yield
    finally:
        sys.stderr = before
