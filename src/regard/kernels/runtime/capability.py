"""Capability checks of a GPU for Triton kernels, and its shared memory."""

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch

from regard.user_cache import set_kernel_cache

Answer = TypeVar("Answer", bound=Callable[..., object])

INSTALLED = importlib.util.find_spec("triton") is not None
OLDEST, OLDEST_FOR_BFLOAT16 = (7, 0), (8, 0)
"""The lowest compute capabilities for Triton, and for bfloat16."""
INTERPRETER_MEMORY = 1 << 40
"""Shared memory assumed for Triton's interpreter, which has none."""
CONSTANT = "_dynamo_marked_constant"
"""The attribute that torch.compiler.assume_constant_result sets on a function."""
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""True if Triton's interpreter runs the kernels, which is decided when they are imported."""


def allows_assembly() -> bool:
    """True if kernels may contain PTX assembly: not in the interpreter nor on AMD's GPUs."""
    return not INTERPRETED and torch.version.hip is None


def mark_constant(function: Answer) -> Answer:
    """Mark a function like torch.compiler.assume_constant_result, without its slow import of the compiler."""
    setattr(function, CONSTANT, True)
    return function


@mark_constant
def find_obstacle(device: torch.device, dtype: torch.dtype = torch.float32) -> str | None:
    """The reason Triton does not run on this GPU in this precision, or None."""
    if device.type != "cuda":
        return None
    return _find_obstacle(torch.cuda.current_device() if device.index is None else device.index, dtype)


@cache
def _find_obstacle(number: int, dtype: torch.dtype) -> str | None:
    capability = torch.cuda.get_device_capability(number)
    if capability < OLDEST:
        return f"needs a GPU of compute capability {label(OLDEST)}, got {label(capability)}"
    if dtype == torch.bfloat16 and capability < OLDEST_FOR_BFLOAT16:
        return f"needs compute capability {label(OLDEST_FOR_BFLOAT16)} for bfloat16, got {label(capability)}; use float16"
    return find_launch_error(number)


@cache
def find_launch_error(number: int) -> str | None:
    """The reason Triton cannot launch a kernel on this GPU (no C compiler, no cache directory), or None.

    It is tested once, by launching an empty kernel.
    """
    if not INSTALLED:
        return "needs Triton, which is not installed; pip install triton"
    from regard.kernels.runtime.smoke_test import launch_empty_kernel

    set_kernel_cache()
    try:
        with torch.cuda.device(number):
            launch_empty_kernel()
    except Exception as error:  # every compiler fails in its own way
        first = next(iter(str(error).strip().splitlines()), "")
        return f"needs Triton to work on this machine, and it failed: {type(error).__name__}: {first}"
    return None


@mark_constant
def find_shared_memory(device: torch.device) -> int:
    """Bytes of shared memory available to one program."""
    if device.type != "cuda":
        return INTERPRETER_MEMORY
    return _find_shared_memory(torch.cuda.current_device() if device.index is None else device.index)


@cache
def _find_shared_memory(number: int) -> int:
    known = torch.cuda.get_device_properties(number)
    return int(getattr(known, "shared_memory_per_block_optin", 0) or known.shared_memory_per_block)


def label(capability: tuple[int, int]) -> str:
    """A compute capability as text, 7.5 for (7, 5)."""
    return ".".join(map(str, capability))
