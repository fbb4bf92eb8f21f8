"""How much a program takes at a time, and where it runs."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Tile(NamedTuple):
    """Keys that a program of a look takes at once, and its warps."""

    keys: int
    warps: int


def tile(keys: int) -> Tile:
    """For so many keys at most: few enough for many programs side by side, of which each waits for memory."""
    block = min(128, max(16, 1 << (keys - 1).bit_length()))
    return Tile(block, max(1, block // 32))


def on(like: Tensor) -> AbstractContextManager[Any]:
    """Where Triton launches."""
    return torch.cuda.device(like.device) if like.is_cuda else nullcontext()
