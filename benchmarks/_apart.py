"""What benchmarks of Triton kernels begin with: parity, and every variant compiled, in processes of their own.

Compiling takes longest and one process does it on one core. What the processes compile is found again in Triton's cache.
"""

import os
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import torch
from torch import Tensor


def far(
    name: str, ours: Sequence[Tensor], again: Sequence[Tensor], plain: Sequence[Tensor], exact: Sequence[Tensor]
) -> list[str]:
    """A line for each number further from double precision than twice what plain PyTorch is, or that repeats unequally.

    The first number is the output; the others are gradients, which may be three times as far.
    """
    lines = []
    for place, (one, other, beside, right) in enumerate(zip(ours, again, plain, exact, strict=True)):
        error, usual = ((each.double() - right).abs().max().item() for each in (one, beside))
        bound = (3 if place else 2) * usual + 4 * torch.finfo(torch.float32).eps * (1 + right.abs().max().item())
        if not error <= bound:
            lines.append(f"PARITY {name} number {place}: {error:.2e}, bound {bound:.2e}")
        if not torch.equal(one, other):
            lines.append(f"PARITY {name} number {place}: a repeat differs")
    return lines


def apart(work: Callable[[str], list[str]], names: Sequence[str]) -> int:
    """How many lines `work` found to say of all names; each is printed as it comes, and a failure is a line too."""
    began, told = time.perf_counter(), 0
    with ProcessPoolExecutor(min(16, os.cpu_count() or 1), get_context("spawn")) as pool:
        waiting = {pool.submit(_guarded, work, name): name for name in names}
        for done in as_completed(waiting):
            lines = done.result()
            told += len(lines)
            for line in lines:
                print(line, flush=True)
    print(f"{len(names)} cases in {time.perf_counter() - began:.0f} s, {told} complaints", flush=True)
    return told


def _guarded(work: Callable[[str], list[str]], name: str) -> list[str]:
    try:
        return work(name)
    except Exception as error:  # a variant that cannot be compiled is a finding, not the end
        last = traceback.extract_tb(error.__traceback__)[-1]
        return [f"FAILED {name}: {type(error).__name__}: {' '.join(str(error).split())[:240]} ({last.name}:{last.lineno})"]
