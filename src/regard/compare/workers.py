"""Worker processes of a comparison, one for each training, so that a failure stops one training alone.

A child is `regard compare-one` with a request on its standard input, which stays open: when it closes, the parent has exited
and the child stops. Children are in sessions of their own, so that Ctrl-C reaches them once, through the parent; they save a
checkpoint before they exit.
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
POLL = 0.2
"""Seconds between two checks for a signal."""
PREFIX = "regard: "
"""Prefix of an error message."""


class Job(NamedTuple):
    """A training: its name, and the request to its worker."""

    name: str
    request: dict[str, Any]


EndCallback = Callable[[Job, str | None], None]
"""Called for every finished job, with the reason where it failed."""


def run_jobs(
    jobs: Sequence[Job], at_once: int, display: Display, on_end: EndCallback, command: Sequence[str] = COMMAND
) -> None:
    """Run all trainings, `at_once` in parallel. A signal stops the workers, which save checkpoints, and raises."""
    workers = WorkerPool(command, display, threads(at_once))
    with Interruption() as interruption, ThreadPoolExecutor(at_once) as pool:
        waiting = {pool.submit(workers.run, job): job for job in jobs}
        try:
            while waiting:
                finished, _ = wait(waiting, timeout=POLL, return_when=FIRST_COMPLETED)
                if interruption.signal is not None:
                    raise interruption.exit()
                for future in finished:
                    on_end(waiting.pop(future), future.result())
        finally:
            workers.stop()  # before the pool waits for its threads


def threads(at_once: int) -> int:
    """Threads of a worker: its share of the available cores."""
    return max(1, len(os.sched_getaffinity(0)) // at_once)


class WorkerPool:
    """The running workers."""

    def __init__(self, command: Sequence[str], display: Display, thread_count: int):
        self.command, self.display = list(command), display
        self.environment = {"OMP_NUM_THREADS": str(thread_count), **os.environ}  # a setting of the user has priority
        self.running: set[subprocess.Popen[str]] = set()
        self.stopped, self.lock = False, threading.Lock()

    def run(self, job: Job) -> str | None:
        """Run one job; returns the reason where it failed."""
        with self.lock:
            if self.stopped:
                return "stopped before it began"
            child = self.start()
        last_lines: deque[str] = deque(maxlen=20)
        self.display.begin(job.name)
        try:
            self.send(child, job.request)
            for line in child.stderr or ():
                last_lines.append(line.rstrip("\n"))
                self.display.update(job.name, last_lines[-1])
            code = child.wait()
        finally:
            with self.lock:
                self.running.discard(child)
            for stream in (child.stdin, child.stderr):
                if stream is not None:
                    stream.close()
        return None if code == 0 else describe_failure(code, list(last_lines))

    def start(self) -> "subprocess.Popen[str]":
        """Start a worker, which waits for its request."""
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

    def send(self, child: "subprocess.Popen[str]", request: dict[str, Any]) -> None:
        """Send a request; a worker that has exited already reports why on standard error."""
        if child.stdin is None:
            return
        with suppress(BrokenPipeError):
            child.stdin.write(json.dumps(request) + "\n")
            child.stdin.flush()

    def stop(self) -> None:
        """Signal every worker to save a checkpoint and exit."""
        with self.lock:
            self.stopped = True
            for child in self.running:
                child.terminate()


def describe_failure(code: int, last_lines: list[str]) -> str:
    """Reason why a worker failed: its own message, or the signal or exit code that ended it."""
    messages = [line.removeprefix(PREFIX) for line in last_lines if line.startswith(PREFIX)]
    if messages:
        return messages[-1]
    if code == -signal.SIGKILL:
        return "killed from outside (SIGKILL), as a machine does that runs out of memory; try fewer --jobs"
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return last_lines[-1] if last_lines else f"ended with code {code} and said nothing"


def read_request() -> dict[str, Any]:
    """Read the request in a worker, which from here on ends with its parent."""
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
