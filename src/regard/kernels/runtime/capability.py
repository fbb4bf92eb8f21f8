"""What a GPU must have for a kernel in Triton to run on it, and how much shared memory it has."""

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch

Answer = TypeVar("Answer", bound=Callable[..., object])

INSTALLED = importlib.util.find_spec("triton") is not None
OLDEST, OLDEST_FOR_BFLOAT16 = (7, 0), (8, 0)
"""Compute capabilities from which on Triton compiles at all, and for bfloat16."""
ENDLESS = 1 << 40
"""The shared memory of Triton's interpreter, which has none."""
CONSTANT = "_dynamo_marked_constant"
"""What torch.compiler.assume_constant_result writes on a function."""
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton's interpreter runs the kernels, which is settled when they are imported."""


def assembly() -> bool:
    """Whether kernels may hold NVIDIA's assembly: the interpreter knows none, and AMD's GPUs another."""
    return not INTERPRETED and torch.version.hip is None


def constant(function: Answer) -> Answer:
    """torch.compiler.assume_constant_result, which imports all of the compiler: longer than the rest of an answer takes."""
    setattr(function, CONSTANT, True)
    return function


@constant
def lacking(device: torch.device, dtype: torch.dtype = torch.float32) -> str | None:
    """None where Triton runs on this GPU in this precision, else the reason it does not."""
    if device.type != "cuda":
        return None
    return _lacking(torch.cuda.current_device() if device.index is None else device.index, dtype)


@cache
def _lacking(number: int, dtype: torch.dtype) -> str | None:
    capability = torch.cuda.get_device_capability(number)
    if capability < OLDEST:
        return f"needs a GPU of compute capability {named(OLDEST)}, got {named(capability)}"
    if dtype == torch.bfloat16 and capability < OLDEST_FOR_BFLOAT16:
        return f"needs compute capability {named(OLDEST_FOR_BFLOAT16)} for bfloat16, got {named(capability)}; use float16"
    return broken(number)


@cache
def broken(number: int) -> str | None:
    """Why Triton cannot start a program on this GPU: no C compiler, no place for its cache; None where it can.

    It is asked once, by starting a program that does nothing.
    """
    if not INSTALLED:
        return "needs Triton, which is not installed; pip install triton"
    from regard.kernels.runtime.smoke_test import start

    try:
        with torch.cuda.device(number):
            start()
    except Exception as error:  # it fails in as many ways as there are compilers
        first = next(iter(str(error).strip().splitlines()), "")
        return f"needs Triton to work on this machine, and it failed: {type(error).__name__}: {first}"
    return None


@constant
def room(device: torch.device) -> int:
    """Bytes of shared memory that one program may take."""
    if device.type != "cuda":
        return ENDLESS
    return _room(torch.cuda.current_device() if device.index is None else device.index)


@cache
def _room(number: int) -> int:
    known = torch.cuda.get_device_properties(number)
    return int(getattr(known, "shared_memory_per_block_optin", 0) or known.shared_memory_per_block)


def named(capability: tuple[int, int]) -> str:
    """7.5 for (7, 5)."""
    return ".".join(map(str, capability))
