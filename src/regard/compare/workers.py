"""Trainings side by side, each in a process of its own, so that one that breaks breaks alone.

A child is `regard compare-one` with a request on its standard input, which stays open: when it closes, whoever asked is gone
and the child stops as if it were told to. Children are out of reach of the terminal's Ctrl-C, which they would get a second
time from us; they are told once, and save a checkpoint before they go.
"""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, NamedTuple

from regard.compare.progress import Display
from regard.training.signals import Interruption

COMMAND = (sys.executable, "-m", "regard", "compare-one")
LOOK = 0.2
"""Seconds between two looks at whether somebody asked for an end."""
SAID = "regard: "
"""What an error's line begins with."""


class Job(NamedTuple):
    """A training to be made: what it is called, and what its child is asked."""

    name: str
    request: dict[str, Any]


Ended = Callable[[Job, str | None], None]
"""Told of every job that is over, with the reason where it failed."""


def work(jobs: Sequence[Job], at_once: int, display: Display, ended: Ended, command: Sequence[str] = COMMAND) -> None:
    """Make every training, so many at once. A signal stops all children, which save themselves, and raises Interrupted."""
    crew = Crew(command, display, threads(at_once))
    with Interruption() as interruption, ThreadPoolExecutor(at_once) as pool:
        waiting = {pool.submit(crew.do, job): job for job in jobs}
        try:
            while waiting:
                over, _ = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
                if interruption.signal is not None:
                    raise interruption.exit()
                for each in over:
                    ended(waiting.pop(each), each.result())
        finally:
            crew.stop()  # before the pool waits for its threads


def threads(at_once: int) -> int:
    """How many threads a child gets: its share of the cores that we may use."""
    return max(1, len(os.sched_getaffinity(0)) // at_once)


class Crew:
    """The children that are at work."""

    def __init__(self, command: Sequence[str], display: Display, each: int):
        self.command, self.display = list(command), display
        self.environment = {"OMP_NUM_THREADS": str(each), **os.environ}  # who sets it themselves is heeded
        self.running: set[subprocess.Popen[str]] = set()
        self.stopped, self.lock = False, threading.Lock()

    def do(self, job: Job) -> str | None:
        """One job from beginning to end; the reason where it failed."""
        with self.lock:
            if self.stopped:
                return "stopped before it began"
            child = self.start()
        said: deque[str] = deque(maxlen=20)
        self.display.begin(job.name)
        try:
            self.ask(child, job.request)
            for line in child.stderr or ():
                said.append(line.rstrip("\n"))
                self.display.news(job.name, said[-1])
            code = child.wait()
        finally:
            with self.lock:
                self.running.discard(child)
            for stream in (child.stdin, child.stderr):
                if stream is not None:
                    stream.close()
        return None if code == 0 else why(code, list(said))

    def start(self) -> "subprocess.Popen[str]":
        """A child that waits for its request."""
        child = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=self.environment,
            start_new_session=True,
        )
        self.running.add(child)
        return child

    def ask(self, child: "subprocess.Popen[str]", request: dict[str, Any]) -> None:
        """Hand over a request; a child that is gone already tells why by its last words."""
        if child.stdin is None:
            return
        with suppress(BrokenPipeError):
            child.stdin.write(json.dumps(request) + "\n")
            child.stdin.flush()

    def stop(self) -> None:
        """Tell every child to save itself and go."""
        with self.lock:
            self.stopped = True
            for child in self.running:
                child.terminate()


def why(code: int, said: list[str]) -> str:
    """Why a child failed: its own words, or what ended it."""
    told = [line.removeprefix(SAID) for line in said if line.startswith(SAID)]
    if told:
        return told[-1]
    if code == -signal.SIGKILL:
        return "killed from outside (SIGKILL), as a machine does that runs out of memory; try fewer --jobs"
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return said[-1] if said else f"ended with code {code} and said nothing"


def asked() -> dict[str, Any]:
    """In a child: the request. From here on the child ends when whoever asked is gone."""
    request: dict[str, Any] = json.loads(sys.stdin.readline())
    sys.stderr = Unheard()
    threading.Thread(target=_orphaned, daemon=True).start()
    return request


class Unheard(io.TextIOBase):
    """Standard error that may have lost its reader: a child with a checkpoint to write does not die of telling nobody."""

    def write(self, text: str) -> int:
        """Say it to whoever hears."""
        with suppress(BrokenPipeError):
            os.write(2, text.encode("utf-8", "replace"))
        return len(text)


def _orphaned() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock the interpreter wants when it ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
