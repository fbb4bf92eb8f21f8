"""Opening files that somebody else has named: never a wait without end, and never a device, which has no end itself."""

import errno
import os
import select
import stat
from io import BufferedReader
from pathlib import Path

WAIT = 3.0
"""Seconds that a pipe may be without a writer. `<(command)` has one at once; for a named pipe it is to be started first."""


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file, opened for reading; what it cannot be is an OSError that says why."""
    return _opened(path, pipes=False)


def open_stream(path: Path | str) -> BufferedReader:
    """A regular file, a pipe that somebody writes to, or a terminal, opened for reading from its beginning to its end."""
    return _opened(path, pipes=True)


def is_pipe(path: Path | str) -> bool:
    """Return True for a pipe, which can be read once."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _opened(path: Path | str, pipes: bool) -> BufferedReader:
    # a pipe without a writer would be waited for as it is opened
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _check(handle, pipes)
        os.set_blocking(handle, True)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _check(handle: int, pipes: bool) -> None:
    mode = os.fstat(handle).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISREG(mode):
        return
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a device"
    if not pipes:
        raise OSError(errno.EINVAL, f"it is {kind}, and a regular file is needed; copy what it holds into one")
    if not stat.S_ISFIFO(mode) and not os.isatty(handle):
        raise OSError(errno.EINVAL, "it is a device, and a file or a pipe is needed")
    if stat.S_ISFIFO(mode) and not _written(handle):
        raise OSError(
            errno.ETIMEDOUT, f"it is a pipe that nobody has written to for {WAIT:.0f} seconds; start its writer first"
        )


def _written(handle: int) -> bool:
    """Return True if a pipe has bytes, or had a writer, in time."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(WAIT * 1000))
