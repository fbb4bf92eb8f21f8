"""How fast a file is answered, and how long it still takes: on standard error, now and then."""

import sys
import time
from collections.abc import Callable
from typing import Any

OFTEN, SELDOM = 0.5, 10.0
"""Seconds between two words on a terminal, and in a file."""


class Pace:
    """Lines a second and the time left. `total` is how many lines there are, where that is known; `done` are so already."""

    def __init__(self, total: int | None, done: int = 0, stream: Any = None, clock: Callable[[], float] = time.monotonic):
        self.total, self.done, self.clock = total, done, clock
        self.stream = sys.stderr if stream is None else stream
        self.terminal = bool(self.stream.isatty())
        self.began, self.first = clock(), done
        self.told = self.began

    def advance(self, lines: int = 1) -> None:
        """So many lines more."""
        self.done += lines
        now = self.clock()
        if now - self.told >= (OFTEN if self.terminal else SELDOM):
            self.told = now
            print(f"\r{self.words(now)}\x1b[K" if self.terminal else self.words(now), file=self.stream, flush=True, end="")
            if not self.terminal:
                print(file=self.stream, flush=True)

    def words(self, now: float) -> str:
        """12,000 of 1,000,000 lines · 240 lines/s · 1:08:37 left."""
        from regard.training.progress import clock

        speed = (self.done - self.first) / max(now - self.began, 1e-9)
        parts = [f"{self.done:,}{f' of {self.total:,}' if self.total else ''} lines", f"{speed:,.1f} lines/s"]
        if self.total and speed:
            parts.append(f"{clock((self.total - self.done) / speed)} left")
        return " · ".join(parts)

    def end(self) -> None:
        """Leave the last word of a terminal standing."""
        if self.terminal and self.told > self.began:
            print(f"\r{self.words(self.clock())}\x1b[K", file=self.stream, flush=True)
