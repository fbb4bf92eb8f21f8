"""The boundary of reading: an error of any library becomes one of ours, which names the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import ConfigError, DamagedError, DataError, RefusedError, TrainingError

OURS = (TrainingError, ConfigError, DataError)
"""Errors that already say what to do."""
PASSED = (ImportError, Warning)
"""A library that is not installed, and a warning that somebody has made an error, are no damage of a file."""
PANIC = "pyo3_runtime"
"""The module of the error that a panic in Rust becomes; it derives from BaseException."""


@contextmanager
def boundary(path: Path | str) -> Iterator[None]:
    """Raise whatever falls while `path` is read as DamagedError, or RefusedError where the memory is too small.

    Files come from anywhere, and what a parser does on a forged one is its own: pydantic, tokenizers, sentencepiece,
    safetensors, json, onnxruntime and Python itself raise dozens of classes. The error that fell is chained, and its class
    is named, so that a mistake of our own is not taken for damage by whoever reads the message (`--debug` shows where).
    """
    try:
        yield
    except OURS:
        raise
    except PASSED:
        raise
    except LookupError as error:
        if type(error) is not LookupError:
            raise _damaged(path, error) from error
        raise RefusedError(f"{path} cannot be opened: {error}") from error  # ours: an unknown name, with the nearest
    except MemoryError as error:
        raise _too_large(path) from error
    except Exception as error:
        raise (_too_large(path) if _out_of_memory(error) else _damaged(path, error)) from error
    except BaseException as error:
        if type(error).__module__ != PANIC:
            raise
        raise _damaged(path, error) from error


def one_line(error: BaseException, most: int = 300) -> str:
    """The text of an error in one line of bounded length."""
    text = " ".join(str(error).split())
    return text if len(text) <= most else f"{text[:most]} ..."


def _damaged(path: Path | str, error: BaseException) -> DamagedError:
    return DamagedError(
        f"{path} cannot be opened, something in it is not as regard writes it: {type(error).__name__}: {one_line(error)} "
        "(`regard --debug ...` shows where); copy it again from where it is whole, or make it anew"
    )


def _too_large(path: Path | str) -> RefusedError:
    return RefusedError(f"{path} needs more memory than there is: open it on a larger machine")


def _out_of_memory(error: Exception) -> bool:
    return type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
