"""Selection of the largest tiles that fit in a GPU's shared memory, by an estimate and then by trial.

Triton knows the shared memory of a kernel only after compilation, and it differs between GPUs and versions. So an estimate
avoids compiling hopeless tiles, and the GPU decides: a kernel that does not fit raises OutOfResources before it runs, and
the next smaller tiles are taken, then and from then on.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch

from regard.kernels.runtime.capability import find_shared_memory

Set = TypeVar("Set")
Result = TypeVar("Result")

TOO_LARGE: dict[Hashable, int] = {}
"""Number of tile sizes found too large, by kind of kernel."""
CURRENT_DEVICE: AbstractContextManager[Any] = nullcontext()


def launch_largest(
    start: Callable[[Set], Result],
    sets: Sequence[Set],
    need: Callable[[Set], int],
    device: torch.device,
    kind: Hashable,
) -> Result:
    """Launch a kernel with the largest of these tile sizes that fits on the device.

    The sizes come largest first; `need` estimates bytes of shared memory. Sizes found too large are remembered for a `kind`
    of kernel on a device; the smallest is always tried, and raises OutOfResources where even that does not fit.
    """
    known = kind, device
    index = TOO_LARGE.get(known)
    if index is None:
        index = TOO_LARGE[known] = count_too_large(sets, need, find_shared_memory(device))
    with use_device(device):
        while index < len(sets) - 1:
            try:
                return start(sets[index])
            except Exception as error:
                if type(error).__name__ != "OutOfResources":  # Triton's; to import it here would cost every launch
                    raise
            index = TOO_LARGE[known] = index + 1 + count_too_large(sets[index + 1 :], need, find_shared_memory(device))
        return start(sets[index])


def count_too_large(sets: Sequence[Set], need: Callable[[Set], int], limit: int) -> int:
    """The number of tile sizes, from the first on, whose estimate is too large; never the last."""
    return next((index for index, tiles in enumerate(sets[:-1]) if need(tiles) <= limit), len(sets) - 1)


def use_device(device: torch.device) -> AbstractContextManager[Any]:
    """Context manager that makes a device current, on which Triton launches."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return CURRENT_DEVICE
    return torch.cuda.device(device)
