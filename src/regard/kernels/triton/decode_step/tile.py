"""How much a program takes at a time, where it runs, and whether it may begin before the one ahead of it has ended."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

OVERLAPS = (9, 0)
"""The compute capability from which on a kernel may begin early."""


class Tile(NamedTuple):
    """Keys that a program of a look takes at once, and its warps."""

    keys: int
    warps: int


def tile(keys: int, size: int = 64) -> Tile:
    """For so many keys at most, of so many numbers: few enough for many programs side by side, of which each waits for
    memory, and for the registers of one."""
    block = min(128, max(16, 1 << (keys - 1).bit_length()), max(16, 8192 >> (size - 1).bit_length()))
    return Tile(block, max(1, block // 32))


def on(like: Tensor) -> AbstractContextManager[Any]:
    """Where Triton launches."""
    return torch.cuda.device(like.device) if like.is_cuda else nullcontext()


def overlaps(device: torch.device) -> bool:
    """Whether a kernel there may begin while the one ahead of it ends; it waits before it reads what that one wrote."""
    nvidia = device.type == "cuda" and torch.version.hip is None
    return nvidia and torch.cuda.get_device_capability(device) >= OVERLAPS


def sooner(early: bool) -> dict[str, bool]:
    """What a launch is told; only a backend that can begin early knows the second."""
    return {"EARLY": early} | ({"launch_pdl": True} if early else {})
