"""How fast a training goes, how it goes, and how long it will take."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from regard.training.log import finite


class Speed:
    """Counts tokens and losses between two looks, and time over all runs of a training together.

    `stretch` is what `state` returned when the checkpoint was written: the next look is the undisturbed training's.
    """

    def __init__(self, seconds: float = 0.0, stretch: Mapping[str, Any] = MappingProxyType({})):
        self.before = seconds
        self.started = time.monotonic()
        self.first: int | None = None
        self.last: float | None = None
        """The loss of the last update that changed anything, per token; None before the first."""
        self.clear()
        self.restore(stretch)

    def state(self) -> dict[str, Any]:
        """All that is known of this stretch, as a checkpoint keeps it; null where JSON has no number."""
        names = ("seconds", "waited", "tokens", "sums", "idle", "last")
        state: dict[str, Any] = finite({name: getattr(self, name) for name in names})
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with a stretch; an empty one begins here."""
        for name, value in state.items():
            setattr(self, name, value)
        self.sums = {name: math.nan if value is None else value for name, value in state.get("sums", {}).items()}

    def clear(self) -> None:
        """Begin a new stretch."""
        self.seconds, self.waited, self.tokens, self.sums = 0.0, 0.0, 0, dict[str, float]()
        self.idle: float | None = None

    def add(self, loss: float, tokens: int, parts: Mapping[str, float]) -> None:
        """Take in the losses of one update, given per token."""
        self.tokens, self.last = self.tokens + tokens, loss
        for name, value in {"loss": loss, **parts}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value * tokens

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Around an update: what evaluations and checkpoints take is not counted into the speed."""
        begun = time.monotonic()
        yield
        self.seconds += time.monotonic() - begun

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around what an update waits for: batches that are not made yet."""
        begun = time.monotonic()
        yield
        self.waited += time.monotonic() - begun

    def rest(self, seconds: float) -> None:
        """Take in how long a GPU had nothing to do before an update."""
        self.idle = (self.idle or 0.0) + seconds

    def record(self) -> dict[str, Any]:
        """The figures of this stretch, and a new one begins.

        `waited` is the share of its time that batches took to come; `idle`, of a GPU, that in which it had nothing to do.
        """
        means = {name: value / max(self.tokens, 1) for name, value in self.sums.items()}
        seconds = max(self.seconds, 1e-9)
        pace = {"tokens_per_second": round(self.tokens / seconds, 1), "waited": round(min(1.0, self.waited / seconds), 4)}
        if self.idle is not None:
            pace["idle"] = round(min(1.0, self.idle / seconds), 4)
        record = {"loss": None, **means, **pace}
        self.clear()
        return record

    def elapsed(self) -> float:
        """Seconds of training, earlier runs included."""
        return self.before + time.monotonic() - self.started

    def left(self, step: int, steps: int, minutes: float | None) -> float | None:
        """Seconds until the end, as far as can be told from this run's steps so far."""
        if self.first is None:
            self.first, self.began = step, time.monotonic()
            return None if minutes is None else max(0.0, 60 * minutes - self.elapsed())
        pace = (time.monotonic() - self.began) / max(1, step - self.first)
        by_steps = pace * (steps - step)
        return by_steps if minutes is None else min(by_steps, max(0.0, 60 * minutes - self.elapsed()))
