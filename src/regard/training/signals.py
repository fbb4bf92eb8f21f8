"""Signals that ask for an end: SIGTERM from whoever runs the machine, SIGINT from whoever sits at it, SIGHUP from a terminal
that is closed. Output that nobody reads any more counts as SIGPIPE, which Python turns into an error."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from regard.errors import Interrupted

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interruption:
    """Catches the first signal and remembers it, for the loop to look at between steps; a second one ends at once.

    Long work that may be thrown away, such as an evaluation, runs inside `at_once()`, where the signal raises.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.raising = False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # by nohup: a closed terminal ends nothing
            numbers = [number for number in SIGNALS if not (ignored and number == signal.SIGHUP)]
            self.before = {number: signal.signal(number, self.catch) for number in numbers}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.restore()

    def restore(self) -> None:
        """Give the signals back to whoever had them."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def catch(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: note the signal and restore the former handlers, so that a second signal ends the process.

        A closing terminal hangs up twice, once by the kernel and once by the shell: the second time asks for nothing new.
        """
        self.signal = number
        hangup = self.before.pop(signal.SIGHUP, None)
        self.restore()
        if hangup is not None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self.before = {signal.SIGHUP: hangup}
        if self.raising:
            self.raising = False
            raise self.exit()

    def lose_reader(self) -> None:
        """Ask for a stop because the output has lost its reader."""
        self.signal = self.signal or signal.SIGPIPE

    def exit(self) -> Interrupted:
        """The exit that a process owes after this signal."""
        return Interrupted(128 + (self.signal or 0))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal raises instead of waiting."""
        self.raising = True
        try:
            if self.signal is not None:
                raise self.exit()
            yield
        finally:
            self.raising = False
