"""What an export makes, a directory or a file: all of it or nothing, and never over something else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from regard.training import atomic
from regard.training.errors import RefusedError


def free(out: Path) -> None:
    """Raise where something lies in the way; told before anything is computed."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise RefusedError(f"{out} is there already and is not empty: choose another name, or remove it first")
    if not out.parent.is_dir():
        raise RefusedError(f"{out} cannot be made: there is no directory {out.parent}; make it first")


def put(out: Path, files: Mapping[str, bytes]) -> int:
    """Write the files into a directory; how many bytes they are."""
    with _writing(out):
        atomic.write_directory(out, files)
    return sum(map(len, files.values()))


def put_file(out: Path, data: bytes) -> int:
    """Write a file; how many bytes it has."""
    with _writing(out):
        atomic.write(out, data)
    return len(data)


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    free(out)
    try:
        yield
    except OSError as error:
        raise RefusedError(f"cannot write to {out}: {error.strerror}; choose a place that can be written") from error
