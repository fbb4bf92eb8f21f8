"""Write so that a reader, or the next start, finds the old or the new and never something between.

    write to .tmp-*  ->  fsync the file  ->  fsync its directory  ->  rename  ->  fsync the parent

A process may be killed between any two instructions of this, and the power may fail. A temporary name is random and is
created exclusively, so that nobody can put a link in its place beforehand and two writers of one path do not share it: what
is renamed last is read from then on. What cannot be written becomes an `UnwritableError` here, with the path and the reason.

A path that is a link becomes a file of its own: the rename replaces the link, and what it pointed at stays as it was.
"""

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from regard.errors import UnwritableError

TEMPORARY = ".tmp-"
RANDOM = "[0-9a-f]" * 16
"""The pattern of what stands behind the prefix in a temporary name."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ADVICE = {
    errno.ENOENT: "make its directory first, or choose another place",
    errno.EISDIR: "name a file, not a directory",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def write(path: Path, data: bytes) -> None:
    """A file with this content."""
    with replacing(path, len(data)) as file, room(path, len(data)):
        _put(file, data)


@contextmanager
def replacing(path: Path, size: int | None = None) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block ends well, and of which nothing is left when it does not.

    The block writes inside `room`; whatever else it raises is not about this file.
    """
    path = Path(path)
    with room(path, size):
        _check_kind(path)
        temporary = temporary_name(path.parent)
        file = _create(temporary)
    try:
        yield file
        with room(path, size):
            _sync(file)
            os.replace(temporary, path)  # before it is closed: a temporary file is locked while somebody writes it
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        with suppress(OSError):  # where the disk is full, what could not be written is tried once more
            file.close()
    with room(path, size):
        flush(path.parent)


def write_directory(path: Path, files: Mapping[str, bytes]) -> None:
    """A directory with these files, in the place of one that may stand there."""
    temporary = temporary_name(path.parent)
    with room(path, sum(map(len, files.values())), temporary):
        temporary.mkdir()
        with _locked(temporary):
            for name, data in files.items():
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                with _create(temporary / name) as file:
                    _put(file, data)
                    _sync(file)
            flush(temporary)
            take_place(temporary, path)
        flush(path.parent)


def take_place(temporary: Path, path: Path) -> None:
    """Rename a directory to a name that another one may have, now or by the time that it is free."""
    while True:
        remove(path)
        try:
            os.rename(temporary, path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return


def remove(path: Path) -> None:
    """Take a file or directory away: first its name, then its content, so that no half of it is ever taken for the whole."""
    if not os.path.lexists(path):
        return
    doomed = path
    if not path.name.startswith(TEMPORARY):
        doomed = temporary_name(path.parent)
        try:
            os.rename(path, doomed)
        except FileNotFoundError:  # somebody else was faster
            return
    if doomed.is_dir() and not doomed.is_symlink():
        shutil.rmtree(doomed)
    else:
        doomed.unlink(missing_ok=True)


def sweep(directory: Path, names: str = "*") -> None:
    """Clear away what a killed process left half-written. What a live process is writing is locked, and stays.

    `names` is the pattern behind the prefix; RANDOM leaves alone what was not named by `temporary_name`.
    """
    for path in directory.glob(f"{TEMPORARY}{names}"):
        if not _in_use(path):
            remove(path)


def temporary_name(directory: Path) -> Path:
    """A name in a directory that nothing has and nobody can guess."""
    return directory / f"{TEMPORARY}{secrets.token_hex(8)}"


def check_target(path: Path) -> None:
    """Refuse a file that could not be written, before anything is computed for it."""
    with room(path):
        check_place(path)
        _check_kind(path)


def check_place(path: Path) -> None:
    """Refuse a path whose directory takes nothing new, before anything is computed for it."""
    with room(path):
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(path)  # a name that is too long, or links without end
        if not path.parent.is_dir():
            raise UnwritableError(f"cannot write {path}: there is no directory {path.parent}; make it first")
        temporary = temporary_name(path.parent)
        _create(temporary).close()
        os.unlink(temporary)


def flush(directory: Path) -> None:
    """Make a directory's entries last."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def room(path: Path, size: int | None = None, temporary: Path | None = None) -> Iterator[None]:
    """The boundary between the system's errors of writing and ours: says which path, and removes the half-written file."""
    try:
        yield
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError):
                remove(temporary)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise unwritable(path, error, size) from error
        raise


def unwritable(path: Path, error: OSError, size: int | None = None) -> UnwritableError:
    """The error that a path cannot be written, from the system's."""
    why = error.strerror or str(error)
    if error.errno in FULL:
        needed = "more than is there" if size is None else f"{size:,} bytes"
        return UnwritableError(
            f"no room to write {path}: it needs {needed} and {_free(path.parent)} are free ({why}). "
            "What was saved before is whole; make room and start again to go on from there"
        )
    return UnwritableError(
        f"cannot write {path}: {why}; {ADVICE.get(error.errno or 0, 'choose a place that can be written')}"
    )


def _free(directory: Path) -> str:
    try:
        return f"{shutil.disk_usage(directory).free:,}"
    except OSError:
        return "an unknown number"


def _check_kind(path: Path) -> None:
    """Refuse to put a file in the place of a directory or a device, also behind a link."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:  # a link to nothing too: the file takes its place
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise UnwritableError(f"cannot write {path}: it is a device or a pipe; name a regular file")


def _create(path: Path) -> BinaryIO:
    """A new file, with the mode that the umask leaves, locked until it is closed."""
    file = os.fdopen(os.open(path, NEW, 0o666), "wb")
    _lock(file.fileno())
    return file


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """A temporary directory that no sweep of another process takes for a leftover."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    with suppress(OSError):  # a file system without locks
        fcntl.flock(handle, fcntl.LOCK_EX)


def _in_use(path: Path) -> bool:
    """Return True if a process holds the lock of a temporary file or directory."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # a link, or something that has gone: nobody writes it
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _put(file: BinaryIO, data: bytes) -> None:
    file.write(data)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
