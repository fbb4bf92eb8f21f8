"""Regular files, read once and within a bound: a FIFO does not block the reader, and a device does not fill the memory."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from regard.errors import DamagedError

SMALL = 256 * 2**20
"""The most bytes of the files that are read beside weights and graphs: settings, vocabularies, tokenizers."""
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""The bytes of this machine's memory; no larger file is read into it."""


def open_regular(path: Path, root: Path | None = None) -> BinaryIO:
    """Open a regular file for reading, or raise DamagedError; of a link, what it leads to counts.

    With a `root`, a link that leads out of that directory is refused. The type is checked before the file is opened, because
    opening some devices acts on them, and again afterwards on the open file, which nobody can exchange any more.
    """
    try:
        if root is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
            raise DamagedError(f"{path} is a link that leads out of {root}: put a copy of the file in its place")
        _check_type(os.stat(path), path)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing") from error
    except (OSError, ValueError) as error:  # a ValueError where its name holds NUL
        raise DamagedError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from error
    file = os.fdopen(handle, "rb", buffering=0)
    try:
        _check_type(os.fstat(handle), path)
    except DamagedError:
        file.close()
        raise
    return file


def read_regular(path: Path, limit: int = SMALL, root: Path | None = None) -> bytes:
    """The content of a regular file of at most `limit` bytes."""
    with open_regular(path, root) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise DamagedError(f"{path} has {size:,} bytes, and at most {limit:,} are read of it")
        parts, remaining = list[bytes](), size
        try:
            while remaining and (part := file.read(remaining)):  # Linux gives at most 2 GiB at once
                parts.append(part)
                remaining -= len(part)
        except OSError as error:
            raise DamagedError(f"{path} cannot be read: {error.strerror}") from error
        if remaining:
            raise DamagedError(f"{path} ends after {size - remaining:,} of {size:,} bytes: it was cut while it was read")
        return parts[0] if len(parts) == 1 else b"".join(parts)


def read_exactly(file: BinaryIO, size: int, path: Path) -> bytearray:
    """The next `size` bytes of an open file; one that has become shorter is damaged."""
    data = bytearray(size)
    view, count = memoryview(data), 0
    try:
        while count < size and (more := file.readinto(view[count:])):  # type: ignore[attr-defined]
            count += more
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror}") from error
    if count < size:
        raise DamagedError(f"{path} ends after {count:,} of {size:,} bytes: it was cut while it was read")
    return data


def _check_type(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DamagedError(f"{path} is no regular file but {_kind(status.st_mode)}: put the file itself there")


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a directory", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for check, name in kinds.items() if check(mode)), "a device")
