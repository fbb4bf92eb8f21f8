"""Display of a training: a progress bar on a terminal, plain lines elsewhere, nothing when quiet."""

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

WAITED = 0.1
"""Share of the time that updates wait for batches, or a GPU for updates, from which on the display says so."""


@runtime_checkable
class Display(Protocol):
    """Protocol of a display of a training; used inside `with`."""

    def __enter__(self) -> "Display": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def advance(self, step: int) -> None: ...

    def show(self, record: Mapping[str, Any], remaining: float | None) -> None: ...

    def say(self, text: str) -> None: ...


def open_display(steps: int, quiet: bool = False, stream: Any = None) -> Display:
    """Open the display that fits where the output goes."""
    stream = stream or sys.stderr
    if quiet or stream is None:  # Python has no standard error where it was closed at the start
        return Lines(None)
    return Bar(steps, stream) if stream.isatty() else Lines(stream)


def format_record(record: Mapping[str, Any], remaining: float | None) -> str:
    """loss 2.031 · 5,120 tokens/s · 1:30 left."""
    loss = record.get("loss")
    parts = [f"loss {loss:.3f}" if loss is not None else "loss -", f"{record.get('tokens_per_second', 0):,.0f} tokens/s"]
    waited, idle = record.get("waited", 0.0), record.get("idle", 0.0)
    if idle > WAITED:
        why = "batches" if waited > idle / 2 else "Python between updates"
        parts.append(f"GPU idle for {100 * idle:.0f} % of the time, waiting for {why}")
    elif waited > WAITED and "idle" not in record:
        parts.append(f"{100 * waited:.0f} % of the time waiting for batches")
    if record.get("skipped"):
        parts.append(f"{record['skipped']} skipped")
    if remaining is not None:
        parts.append(f"{format_time(remaining)} left")
    return " · ".join(parts)


def format_time(seconds: float) -> str:
    """1:02:03, or 2:03."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


class Lines:
    """One line for each piece of news, for files and pipes."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def advance(self, step: int) -> None:
        """Steps alone are no news."""

    def show(self, record: Mapping[str, Any], remaining: float | None) -> None:
        """A line of figures."""
        self.say(f"step {record['step']} · {format_record(record, remaining)}")

    def say(self, text: str) -> None:
        """A line of text."""
        if self.stream is not None:
            print(text, file=self.stream, flush=True)


class Bar:
    """A bar that fills up, with the latest figures behind it."""

    def __init__(self, steps: int, stream: Any):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[figures]}"))
        self.bar = Progress(*columns, console=Console(file=stream), transient=False)
        self.task = self.bar.add_task("training", total=steps, figures="")

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.stop()

    def advance(self, step: int) -> None:
        """Fill the bar up to this step."""
        self.bar.update(self.task, completed=step)

    def show(self, record: Mapping[str, Any], remaining: float | None) -> None:
        """Put the figures behind the bar."""
        self.bar.update(self.task, figures=format_record(record, remaining))

    def say(self, text: str) -> None:
        """A line above the bar."""
        self.bar.console.print(text, highlight=False, markup=False)
