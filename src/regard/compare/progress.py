"""Progress of a comparison: a live row for each running training, or a line at the start and end of each."""

import os
import signal
import sys
from typing import Any, Protocol, runtime_checkable

from regard.training.output_stream import Stream


@runtime_checkable
class Display(Protocol):
    """Protocol of a progress display, called from any thread."""

    def begin(self, name: str) -> None: ...

    def update(self, name: str, line: str) -> None: ...

    def end(self, name: str, line: str) -> None: ...

    def close(self) -> None: ...


def create_display(trainings: int, quiet: bool, stream: Any = None) -> Display:
    """The display for a terminal or for a file."""
    stream = stream or sys.stderr
    if quiet or stream is None:  # Python has no standard error where it was closed at the start
        return Lines(trainings, None)
    stream = Stream(stream, hang_up)
    return Rows(trainings, stream) if stream.isatty() else Lines(trainings, stream)


def hang_up() -> None:
    """Send SIGHUP, as a closed terminal does, where it is handled: workers then save their checkpoints."""
    if callable(signal.getsignal(signal.SIGHUP)):
        os.kill(os.getpid(), signal.SIGHUP)


class Lines:
    """A line when a training begins and one when it ends, for files and pipes."""

    def __init__(self, trainings: int, stream: Any):
        self.trainings, self.stream, self.ended = trainings, stream, 0

    def begin(self, name: str) -> None:
        """Print that a training starts."""
        self._say(f"{name}: training")

    def update(self, name: str, line: str) -> None:
        """Steps are not printed."""

    def end(self, name: str, line: str) -> None:
        """Print the result of a training."""
        self.ended += 1
        self._say(f"[{self.ended}/{self.trainings}] {name}: {line}")

    def close(self) -> None:
        """Nothing to close."""

    def _say(self, text: str) -> None:
        if self.stream is not None:
            print(text, file=self.stream, flush=True)


class Rows:
    """Terminal display: a row for each running training with its latest step, below a line for each finished one."""

    def __init__(self, trainings: int, stream: Any):
        from rich.console import Console
        from rich.progress import Progress, TextColumn

        self.rows: dict[str, Any] = {}
        self.trainings, self.ended = trainings, 0
        self.live = Progress(TextColumn("{task.description}", markup=False), console=Console(file=stream), transient=True)
        self.live.start()

    def begin(self, name: str) -> None:
        """Add a row."""
        self.rows[name] = self.live.add_task(f"{name}: training")

    def update(self, name: str, line: str) -> None:
        """Update the row of a training."""
        self.live.update(self.rows[name], description=f"{name}: {line}")

    def end(self, name: str, line: str) -> None:
        """Remove a row, and print the result above."""
        self.ended += 1
        if name in self.rows:
            self.live.remove_task(self.rows.pop(name))
        text = f"[{self.ended}/{self.trainings}] {name}: {line}"
        self.live.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Stop the live display."""
        self.live.stop()
