"""How dot.py measures: the device's own time of calls that are queued while it sleeps, and the host's beside it."""

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from _timing import WHERE, where

HEADER = ["case", "name", "path", "pass", "ms", "host_us", "to_fastest", *WHERE]
Way = Callable[[Tensor, Tensor, Tensor], Tensor]
Ways = dict[str, tuple[Way, AbstractContextManager[Any]]]
"""Paths by name, each with the context that stands around all of its calls and so costs none of them anything."""


class Timed(NamedTuple):
    """Median milliseconds of the device, and microseconds of the host, for one call."""

    ms: float
    host: float


def once(run: Way, given: list[Tensor], flow: Tensor | None) -> list[Tensor]:
    """The context, and with `flow` the gradient of every input."""
    with torch.set_grad_enabled(flow is not None):
        context = run(*given)
        return [context] if flow is None else [context, *torch.autograd.grad(context, given, flow)]


def timed(side: Callable[[], object], rounds: int) -> Timed:
    """Calls are queued behind a device that sleeps, so that it never waits for the host."""
    for _ in range(2):
        side()
    torch.cuda.synchronize()
    times, host = [], []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)  # cycles: about a millisecond
        start.record()
        began = time.perf_counter()
        side()
        host.append(1e6 * (time.perf_counter() - began))
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return Timed(statistics.median(times), statistics.median(host))


def measured(name: str, ways: Ways, given: list[Tensor], flow: Tensor | None, rounds: int) -> dict[str, Timed]:
    """Every way that takes these inputs; `auto` has to."""
    found = {}
    for path, (run, around) in ways.items():
        try:
            with around:
                found[path] = timed(partial(once, run, given, flow), rounds)
        except Exception as error:  # a way that cannot run here is a finding
            if path == "auto":
                raise
            print(f"{name:32} {path}: {type(error).__name__}: {' '.join(str(error).split())[:80]}", flush=True)
    return found


def rows_of(case: str, name: str, which: str, found: dict[str, Timed], fastest: float) -> list[list[object]]:
    """Rows for the file of results."""
    place = where()
    return [
        [case, name, path, which, f"{each.ms:.4f}", f"{each.host:.1f}", f"{each.ms / fastest:.3f}", *place]
        for path, each in found.items()
    ]


def too_far(name: str, run: Way, reference: Way, given: list[Tensor]) -> list[str]:
    """A line for every number that is further from double precision than it may be."""
    flow = torch.randn_like(given[0])
    wide = [each.detach().double().requires_grad_() for each in given]
    mine, plain, exact = once(run, given, flow), once(reference, given, flow), once(reference, wide, flow.double())
    worse = []
    for place, (one, beside, right) in enumerate(zip(mine, plain, exact, strict=True)):
        error, usual = ((each.double() - right).abs().max().item() for each in (one, beside))
        bound = (3 if place else 2) * usual + 4 * torch.finfo(torch.float32).eps * (1 + right.abs().max().item())
        if not error <= bound:  # nor NaN
            worse.append(f"PARITY {name} number {place}: {error:.2e}, bound {bound:.2e}")
    return worse
