"""Throughput of a training: tokens per second, mean losses, time that a GPU is idle, and time left."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from regard.training.log import replace_nonfinite


class Throughput:
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
        """State of this stretch for a checkpoint; None for a number that JSON cannot hold."""
        names = ("seconds", "waited", "tokens", "sums", "idle", "last")
        state: dict[str, Any] = replace_nonfinite({name: getattr(self, name) for name in names})
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

    def estimate_remaining(self, step: int, steps: int, minutes: float | None) -> float | None:
        """Seconds until the end, as far as can be told from this run's steps so far."""
        if self.first is None:
            self.first, self.began = step, time.monotonic()
            return None if minutes is None else max(0.0, 60 * minutes - self.elapsed())
        pace = (time.monotonic() - self.began) / max(1, step - self.first)
        by_steps = pace * (steps - step)
        return by_steps if minutes is None else min(by_steps, max(0.0, 60 * minutes - self.elapsed()))


class Gap(NamedTuple):
    """Gap from the end of an update to the beginning of the next, by the clock of the GPU itself."""

    end: torch.cuda.Event
    beginning: torch.cuda.Event

    def seconds(self) -> float:
        """Length of the gap; both events must have come."""
        return self.end.elapsed_time(self.beginning) / 1000


class IdleTime:
    """Idle time of a GPU between updates, from events where they begin and end.

    Where the next one is queued before this one ends there is no gap to speak of; where the GPU waits for its host, the gap
    is that long. Waiting inside of an update is not measured.
    """

    def __init__(self, device: torch.device):
        self.device = device if device.type == "cuda" else None
        self.last: torch.cuda.Event | None = None

    def begin(self) -> Gap | None:
        """Gap before an update that begins, to be read when it is done; None on a CPU, and after a `pause`."""
        if self.device is None or self.last is None:
            return None
        return Gap(self.last, _record_event(self.device))

    def end(self) -> None:
        """Mark the end of an update, all of which has been queued."""
        self.last = None if self.device is None else _record_event(self.device)

    def pause(self) -> None:
        """Leave out the time until the next update, which something else takes."""
        self.last = None


def _record_event(device: torch.device) -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event
