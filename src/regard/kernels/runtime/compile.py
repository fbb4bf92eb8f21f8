"""Compile programs side by side, before they are first started.

Triton compiles a program when it is first started: one after the other, each for a tenth of a second to half of one, and
then a C compiler makes what starts it. Here each has a thread.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from typing import Any

import torch

PREPARING: ContextVar[bool] = ContextVar("preparing", default=False)
"""Whether a launch has its program compiled, and does not start it."""
SOON = 0.005
"""Seconds in which a program that lies on the disk is loaded: faster alone than when threads take turns."""
AGAIN = 3
"""How often what failed is tried again."""


def launch(program: Any, grid: tuple[int, ...], /, *given: Any, **options: Any) -> None:
    """Start a program, or have it compiled for arguments like these."""
    if PREPARING.get():
        program.warmup(*given, grid=grid, **options)
    else:
        program[grid](*given, **options)


def prepare(work: Callable[[], object], device: torch.device) -> None:
    """Have all programs compiled that some work launches, and start none of them.

    Their results are never computed, so the work may launch and make room for results, and nothing else. What fails here
    is left to the launch itself, which says why.
    """
    with suppress(Exception):
        copy_context().run(_compile, work, device)  # a mode that was left by Ctrl-C goes with its context


def _compile(work: Callable[[], object], device: torch.device) -> None:
    from triton import AsyncCompileMode

    PREPARING.set(True)
    with on(device), ThreadPoolExecutor() as threads, AsyncCompileMode(Makers(threads, device), ignore_errors=True):
        work()


class Makers:
    """Threads as Triton asks for them. What they compile they also load, and make what starts it."""

    def __init__(self, threads: ThreadPoolExecutor, device: torch.device):
        self.threads, self.device = threads, device

    def submit(self, compiled: Callable[[], Any]) -> "Future[Any]":
        """Let one of them compile a program."""
        future = self.threads.submit(self.make, compiled)
        wait((future,), SOON)
        return future

    def make(self, compiled: Callable[[], Any]) -> Any:
        """A program that can be started at once."""
        with on(self.device):  # every thread has its own
            program = parsed(compiled)
            program._init_handles()  # or the first launch would
        return program


def parsed(compiled: Callable[[], Any]) -> Any:
    """A program, tried again where that fails: Python at times gave up when two threads parsed, until 3.11.8 and 3.12.2.

    https://github.com/python/cpython/issues/106905
    """
    for _ in range(AGAIN):
        with suppress(Exception):
            return compiled()
    return compiled()


def on(device: torch.device) -> AbstractContextManager[Any]:
    """Where Triton launches and loads."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
