"""Parallel compilation of Triton kernels ahead of their first launch.

Triton compiles a kernel at its first launch: one after the other, each for a tenth to half of a second, and then a C
compiler builds its launcher. Here each has a thread.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import cache, partial, wraps
from threading import Lock
from typing import Any

import torch

PREPARING: ContextVar[bool] = ContextVar("preparing", default=False)
"""True while a launch only compiles its kernel."""
LOAD_SECONDS = 0.005
"""Seconds to load a kernel from the disk cache, which is faster in one thread than in several."""
RETRIES = 3
"""Retries of a failed compilation."""


def launch(program: Any, grid: tuple[int, ...], /, *arguments: Any, **options: Any) -> None:
    """Launch a kernel, or compile it for arguments like these."""
    if PREPARING.get():
        retry(partial(program.warmup, *arguments, grid=grid, **options))
    else:
        program[grid](*arguments, **options)


def compile_kernels(work: Callable[[], object], device: torch.device) -> None:
    """Compile all kernels that some work launches, and run none of them.

    No result is computed, so the work may only allocate and launch. An error here is left to the launch itself, which
    raises it.
    """
    with suppress(Exception):
        copy_context().run(_compile, work, device)  # a mode left set by Ctrl-C ends with its context


def _compile(work: Callable[[], object], device: torch.device) -> None:
    from triton import AsyncCompileMode

    serialise_parsing()
    PREPARING.set(True)
    with (
        use_device(device),
        ThreadPoolExecutor() as threads,
        AsyncCompileMode(CompilePool(threads, device), ignore_errors=True),
    ):
        work()


class CompilePool:
    """Thread pool in the interface that Triton takes, which also loads each kernel and builds its launcher."""

    def __init__(self, threads: ThreadPoolExecutor, device: torch.device):
        self.threads, self.device = threads, device

    def submit(self, compiled: Callable[[], Any]) -> "Future[Any]":
        """Compile a kernel in one of the threads."""
        future = self.threads.submit(self.make, compiled)
        wait((future,), LOAD_SECONDS)
        return future

    def make(self, compiled: Callable[[], Any]) -> Any:
        """Compile and load a kernel, ready to launch."""
        with use_device(self.device):  # the current device is per thread
            program = retry(compiled)
            program._init_handles()  # otherwise the first launch does
        return program


@cache
def serialise_parsing() -> None:
    """Have Triton parse one function at a time: until 3.11.8 and 3.12.2 Python fails where two threads parse at once.

    The collector of garbage may hand over to another thread in the middle of a tree, and then both lose count of their
    depth, https://github.com/python/cpython/issues/106905. A function whose parsing fails keeps a placeholder for its hash,
    under which the disk cache would find it again after its source has changed, so that a retry has to be in here.
    """
    from triton.runtime.jit import JITCallable

    parse, lock = JITCallable.parse, Lock()

    @wraps(parse)
    def parse_alone(function: Any) -> Any:
        with lock:
            return retry(partial(parse, function))

    JITCallable.parse = parse_alone


def retry(work: Callable[[], Any]) -> Any:
    """Compile, or parse, with retries: another thread may be parsing Python."""
    for _ in range(RETRIES):
        with suppress(Exception):
            return work()
    return work()


def use_device(device: torch.device) -> AbstractContextManager[Any]:
    """Context manager that makes a device current, on which Triton launches and loads."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
