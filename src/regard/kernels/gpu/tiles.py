"""The largest tiles that a GPU has shared memory for: what is known to be too much is passed over, the rest is tried.

Triton says how much a program needs only when it has compiled it, and it differs from chip to chip and from version to
version. So an estimate spares the compiling of what is hopeless, and the chip has the last word: a program that does not
fit raises OutOfResources before anything ran, and the next smaller tiles are taken, then and from then on.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import TypeVar

import torch

from regard.kernels.gpu.chip import room

Set = TypeVar("Set")
Made = TypeVar("Made")

PASSED: dict[Hashable, int] = {}
"""How many sets of tiles of a kind of program turned out too large."""


def largest(
    start: Callable[[Set], Made],
    sets: Sequence[Set],
    need: Callable[[Set], int],
    device: torch.device,
    kind: Hashable,
) -> Made:
    """Start a program with the first of these sets of tiles, which come largest first, that fits on the device.

    `need` estimates bytes of shared memory. What was too large is remembered for a `kind` of program on a device; the
    smallest set is tried in any case, and where even that does not fit OutOfResources comes out.
    """
    from triton.runtime.errors import OutOfResources

    last, limit = len(sets) - 1, room(device)
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():  # where Triton launches
        for place in range(PASSED.get((kind, device), 0), last):
            if need(sets[place]) <= limit:
                try:
                    return start(sets[place])
                except OutOfResources:
                    pass
            PASSED[kind, device] = place + 1
        return start(sets[last])
