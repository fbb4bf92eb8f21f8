"""The largest tiles that a GPU has shared memory for: what is known to be too much is passed over, the rest is tried.

Triton says how much a program needs only when it has compiled it, and it differs from chip to chip and from version to
version. So an estimate spares the compiling of what is hopeless, and the chip has the last word: a program that does not
fit raises OutOfResources before anything ran, and the next smaller tiles are taken, then and from then on.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch

from regard.kernels.runtime.capability import room

Set = TypeVar("Set")
Made = TypeVar("Made")

PASSED: dict[Hashable, int] = {}
"""How many sets of tiles of a kind of program turned out too large."""
HERE: AbstractContextManager[Any] = nullcontext()


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
    known = kind, device
    place = PASSED.get(known)
    if place is None:
        place = PASSED[known] = hopeless(sets, need, room(device))
    with on(device):
        while place < len(sets) - 1:
            try:
                return start(sets[place])
            except Exception as error:
                if type(error).__name__ != "OutOfResources":  # Triton's; to import it here would cost every launch
                    raise
            place = PASSED[known] = place + 1 + hopeless(sets[place + 1 :], need, room(device))
        return start(sets[place])


def hopeless(sets: Sequence[Set], need: Callable[[Set], int], limit: int) -> int:
    """How many of these sets, from the first on, are too large; never the last."""
    return next((place for place, each in enumerate(sets[:-1]) if need(each) <= limit), len(sets) - 1)


def on(device: torch.device) -> AbstractContextManager[Any]:
    """Where Triton launches: on the current device, which is that of the data but for those who have several."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return HERE
    return torch.cuda.device(device)
