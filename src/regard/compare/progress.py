"""What a person sees while trainings go on: a line for each that is at work, or a line for each that begins and ends."""

import os
import signal
import sys
from typing import Any, Protocol, runtime_checkable

from regard.training.output_stream import Stream


@runtime_checkable
class Display(Protocol):
    """Told, from any thread, what becomes of each training."""

    def begin(self, name: str) -> None: ...

    def news(self, name: str, line: str) -> None: ...

    def end(self, name: str, line: str) -> None: ...

    def close(self) -> None: ...


def display(trainings: int, quiet: bool, stream: Any = None) -> Display:
    """The display that fits where the output goes."""
    stream = stream or sys.stderr
    if quiet or stream is None:  # Python has no standard error where it was closed at the start
        return Lines(trainings, None)
    stream = Stream(stream, hang_up)
    return Rows(trainings, stream) if stream.isatty() else Lines(trainings, stream)


def hang_up() -> None:
    """End the comparison as a closed terminal does, where somebody takes care of that: its workers save themselves."""
    if callable(signal.getsignal(signal.SIGHUP)):
        os.kill(os.getpid(), signal.SIGHUP)


class Lines:
    """A line when a training begins and one when it ends, for files and pipes."""

    def __init__(self, trainings: int, stream: Any):
        self.trainings, self.stream, self.ended = trainings, stream, 0

    def begin(self, name: str) -> None:
        """It is trained now."""
        self._say(f"{name}: training")

    def news(self, name: str, line: str) -> None:
        """Steps are no news here."""

    def end(self, name: str, line: str) -> None:
        """What came of it."""
        self.ended += 1
        self._say(f"[{self.ended}/{self.trainings}] {name}: {line}")

    def close(self) -> None:
        """Nothing is held."""

    def _say(self, text: str) -> None:
        if self.stream is not None:
            print(text, file=self.stream, flush=True)


class Rows:
    """On a terminal: a row for each training at work, with its latest news, below a line for each that ended."""

    def __init__(self, trainings: int, stream: Any):
        from rich.console import Console
        from rich.progress import Progress, TextColumn

        self.rows: dict[str, Any] = {}
        self.trainings, self.ended = trainings, 0
        self.live = Progress(TextColumn("{task.description}", markup=False), console=Console(file=stream), transient=True)
        self.live.start()

    def begin(self, name: str) -> None:
        """A row more."""
        self.rows[name] = self.live.add_task(f"{name}: training")

    def news(self, name: str, line: str) -> None:
        """The latest of a training, in its row."""
        self.live.update(self.rows[name], description=f"{name}: {line}")

    def end(self, name: str, line: str) -> None:
        """A row less."""
        self.ended += 1
        if name in self.rows:
            self.live.remove_task(self.rows.pop(name))
        text = f"[{self.ended}/{self.trainings}] {name}: {line}"
        self.live.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Give the terminal back."""
        self.live.stop()
