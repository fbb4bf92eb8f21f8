"""Work in processes side by side, which a failure does not stop and which end with their time.

Compiling takes longest, and one process does it on one core; what the processes compile is found again in the caches that
all share. A process whose work failed is replaced: after an illegal access a GPU does nothing more for it.
"""

import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection, get_context
from typing import Any, NamedTuple

LINES = 4
"""How much of a traceback is told."""


class Answer(NamedTuple):
    """What a piece of work came to: its answer, or the last lines of what went wrong; and how many seconds it took."""

    piece: Any
    found: Any
    failed: str
    seconds: float


def apart(
    work: Callable[[Any], Any], pieces: Sequence[Any], seconds: float = 600.0, count: int | None = None
) -> Iterator[Answer]:
    """Every piece as it is done; those that time did not suffice for come last, as failed."""
    waiting, end = deque(pieces), time.perf_counter() + seconds
    busy: dict[Any, tuple[Any, Any, float]] = {}
    free: list[tuple[Any, Any]] = []
    most = count or min(16, os.cpu_count() or 1)
    try:
        while (busy or waiting) and time.perf_counter() < end:
            while waiting and len(busy) < most:
                line, process = free.pop() if free else _start(work)
                line.send(waiting[0])
                busy[line] = process, waiting.popleft(), time.perf_counter()
            for line in connection.wait(list(busy), timeout=max(0.0, end - time.perf_counter())):
                process, piece, began = busy.pop(line)
                found, failed = _received(line, process)
                if failed:
                    process.kill()
                else:
                    free.append((line, process))
                yield Answer(piece, found, failed, time.perf_counter() - began)
        for piece in (*(piece for _, piece, _ in busy.values()), *waiting):
            yield Answer(piece, None, f"not done after {seconds:.0f} s", 0.0)
    finally:
        for process in (*(each[0] for each in busy.values()), *(each[1] for each in free)):
            process.kill()


def _start(work: Callable[[Any], Any]) -> tuple[Any, Any]:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(work, there))
    process.start()
    there.close()
    return here, process


def _serve(work: Callable[[Any], Any], line: Any) -> None:
    """One piece after the other, until nobody asks any more."""
    while True:
        try:
            piece = line.recv()
        except EOFError:
            return
        try:
            line.send((work(piece), ""))
        except Exception as error:  # one that cannot be done is a finding, not the end
            line.send((None, told(error)))


def _received(line: Any, process: Any) -> tuple[Any, str]:
    try:
        found: tuple[Any, str] = line.recv()
    except (EOFError, OSError):
        process.join()
        return None, f"its process ended with exit code {process.exitcode}"
    return found


def told(error: BaseException) -> str:
    """The last lines of a traceback."""
    lines = "".join(traceback.format_exception(error)).strip().splitlines()
    return "\n".join(line[:300] for line in lines[-LINES:])
