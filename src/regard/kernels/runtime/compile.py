"""Parallel compilation of Triton kernels ahead of their first launch.

Triton compiles a kernel at its first launch: one after the other, each for a tenth to half of a second, and then a C
compiler builds its launcher. Here each has a thread.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any

import torch

PREPARING: ContextVar[bool] = ContextVar("preparing", default=False)
"""True while a launch only compiles its kernel."""
LOAD_SECONDS = 0.005
"""Seconds to load a kernel from the disk cache, which is faster in one thread than in several."""
RETRIES = 3
"""Retries of a failed compilation."""


def launch(program: Any, grid: tuple[int, ...], /, *given: Any, **options: Any) -> None:
    """Launch a kernel, or compile it for arguments like these."""
    if PREPARING.get():
        compile_with_retries(partial(program.warmup, *given, grid=grid, **options))  # it parses too, beside the threads
    else:
        program[grid](*given, **options)


def compile_kernels(work: Callable[[], object], device: torch.device) -> None:
    """Compile all kernels that some work launches, and run none of them.

    No result is computed, so the work may only allocate and launch. An error here is left to the launch itself, which
    raises it.
    """
    with suppress(Exception):
        copy_context().run(_compile, work, device)  # a mode left set by Ctrl-C ends with its context


def _compile(work: Callable[[], object], device: torch.device) -> None:
    from triton import AsyncCompileMode

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
            program = compile_with_retries(compiled)
            program._init_handles()  # otherwise the first launch does
        return program


def compile_with_retries(parse: Callable[[], Any]) -> Any:
    """Parse, or compile, a kernel with retries: until 3.11.8 and 3.12.2 Python sometimes failed when two threads parsed.

    https://github.com/python/cpython/issues/106905
    """
    for _ in range(RETRIES):
        with suppress(Exception):
            return parse()
    return parse()


def use_device(device: torch.device) -> AbstractContextManager[Any]:
    """Context manager that makes a device current, on which Triton launches and loads."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
