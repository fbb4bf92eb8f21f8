"""Progress of a file on standard error: throughput and remaining time."""

import sys
import time
from collections.abc import Callable
from typing import Any

OFTEN, SELDOM = 0.5, 10.0
"""Seconds between two reports on a terminal, and in a file."""


class ProgressLine:
    """Throughput and remaining time. `total` is the number of lines, where known; `done` are finished already."""

    def __init__(self, total: int | None, done: int = 0, stream: Any = None, clock: Callable[[], float] = time.monotonic):
        self.total, self.done, self.clock = total, done, clock
        self.stream = sys.stderr if stream is None else stream
        self.terminal = bool(self.stream.isatty())
        self.start_time, self.first = clock(), done
        self.reported = self.start_time

    def advance(self, lines: int = 1) -> None:
        """Count finished lines."""
        self.done += lines
        now = self.clock()
        if now - self.reported >= (OFTEN if self.terminal else SELDOM):
            self.reported = now
            print(f"\r{self.format(now)}\x1b[K" if self.terminal else self.format(now), file=self.stream, flush=True, end="")
            if not self.terminal:
                print(file=self.stream, flush=True)

    def format(self, now: float) -> str:
        """12,000 of 1,000,000 lines · 240 lines/s · 1:08:37 left."""
        from regard.training.progress import format_time

        speed = (self.done - self.first) / max(now - self.start_time, 1e-9)
        parts = [f"{self.done:,}{f' of {self.total:,}' if self.total else ''} lines", f"{speed:,.1f} lines/s"]
        if self.total and speed:
            parts.append(f"{format_time((self.total - self.done) / speed)} left")
        return " · ".join(parts)

    def end(self) -> None:
        """Print the last report on a terminal."""
        if self.terminal and self.reported > self.start_time:
            print(f"\r{self.format(self.clock())}\x1b[K", file=self.stream, flush=True)
