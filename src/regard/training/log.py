"""The log of a training: one JSON object a line, and TensorBoard beside it when asked for."""

import io
import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from regard import io as atomic
from regard.errors import RefusedError
from regard.extras import describe_install

NAME = "log.jsonl"


class Log:
    """Opened at a step: what a killed run wrote beyond it is taken back, since it will be written again.

    `lines` is how many there were when the checkpoint of that step was written: a line about the same step may be newer.
    `check` is called before a line is written, and may object.
    """

    def __init__(
        self,
        directory: Path,
        step: int,
        tensorboard: bool = False,
        *,
        lines: int | None = None,
        check: Callable[[], None] = lambda: None,
    ):
        self.path, self.check = directory / NAME, check
        self.board = open_tensorboard(directory / "tensorboard", step) if tensorboard else None
        written = self.path.read_bytes().splitlines() if self.path.exists() else []
        remaining = [line for line in written if _step(line) <= step][:lines]
        atomic.write(self.path, b"".join(line + b"\n" for line in remaining))
        self.lines = len(remaining)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.board is not None:
            self.board.close()

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a line. Numbers that are not finite become null, which every reader of JSON understands."""
        line = json.dumps(replace_nonfinite(record), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        self.check()
        with atomic.room(self.path, len(line)), open(self.path, "ab", buffering=0) as file:
            _append(file, line)
        self.lines += 1
        if self.board is not None:
            for name, value in flatten_numbers(record):
                self.board.add_scalar(name, value, record["step"])


def _append(file: io.FileIO, line: bytes) -> None:
    """Write a whole line or nothing of it: a disk may be full in its middle."""
    size = os.fstat(file.fileno()).st_size
    try:
        remaining = memoryview(line)
        while remaining:
            remaining = remaining[file.write(remaining) :]
    except OSError:
        with suppress(OSError):
            file.truncate(size)
        raise


def replace_nonfinite(value: Any) -> Any:
    """Replace every number that is not finite by None, so that JSON can hold the record."""
    if isinstance(value, Mapping):
        return {name: replace_nonfinite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_nonfinite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def flatten_numbers(record: Mapping[str, Any], path: str = "") -> list[tuple[str, float]]:
    """Every number in a record by its path, as TensorBoard wants them: a/b."""
    pairs: list[tuple[str, float]] = []
    for name, value in record.items():
        if isinstance(value, Mapping):
            pairs += flatten_numbers(value, f"{path}{name}/")
        elif isinstance(value, (int, float)) and name != "step":
            pairs.append((f"{path}{name}", float(value)))
    return pairs


def open_tensorboard(directory: Path, step: int) -> Any:
    """A TensorBoard writer, which is an extra."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise RefusedError(
            f"train.tensorboard needs the tensorboard package, which is not installed: {describe_install('track')}, "
            "or leave the setting out; log.jsonl has the same numbers"
        ) from error
    return SummaryWriter(str(directory), purge_step=step + 1)


def _step(line: bytes) -> int | float:
    """The step that a line is about; a line torn by a kill is about none that has been."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
