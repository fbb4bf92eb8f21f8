"""Tiles, device and programmatic dependent launch of the decoder step's kernels."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

PDL_CAPABILITY = (9, 0)
"""The lowest compute capability with programmatic dependent launch."""


class Tile(NamedTuple):
    """Keys per iteration of an attention program, and its warps."""

    keys: int
    warps: int


def select_tile(keys: int, size: int = 64) -> Tile:
    """Select the tile for at most `keys` keys: small enough for the registers and for many concurrent programs, which hide
    the memory latency."""
    block = min(128, max(16, 1 << (keys - 1).bit_length()), max(16, 8192 >> (size - 1).bit_length()))
    return Tile(block, max(1, block // 32))


def use_device(like: Tensor) -> AbstractContextManager[Any]:
    """Context manager that makes the tensor's device current, on which Triton launches."""
    return torch.cuda.device(like.device) if like.is_cuda else nullcontext()


def supports_pdl(device: torch.device) -> bool:
    """True if a kernel may start before the previous one has ended, and wait before it reads its output."""
    nvidia = device.type == "cuda" and torch.version.hip is None
    return nvidia and torch.cuda.get_device_capability(device) >= PDL_CAPABILITY


def build_launch_options(early: bool) -> dict[str, bool]:
    """Launch options; only a backend with programmatic dependent launch takes the second."""
    return {"EARLY": early} | ({"launch_pdl": True} if early else {})
