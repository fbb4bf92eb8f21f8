"""Expected alignment of monotonic attention: the probability that each query stops at each key."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.scan import recur

Steps = Float[Tensor, "batch heads queries keys"]
Step = Float[Tensor, "#batch #heads 1 keys"]

DEVICES = ("cuda",)
"""Devices that Triton compiles for. Tests add the CPU, on which its interpreter runs."""
LONGEST = 8192
"""The most keys of one program."""
DTYPES = (torch.float32, torch.float64)


def expect_alignment(stop: Steps, carry: Steps, start: Step) -> Steps:
    """Probabilities a_ij that query i stops at key j, from those of the query before; `start` is that of the first.

        q_ij = carry_ij q_i,j-1 + a_i-1,j,    a_ij = stop_ij q_ij

    On a GPU with Triton all queries are one program, in forward and backward; elsewhere each is a recurrence along the
    keys. Where one source has several rows of queries, `start` may be of that source alone.
    """
    start = start.expand(*stop.shape[:2], 1, stop.shape[3])
    if covers(stop) is None:
        from regard.kernels.triton.monotonic import operator

        return operator.expect_alignment(stop, carry, start)
    alignments: list[Tensor] = []  # and not list[Tensor](), which torch.compile cannot trace
    last = start[:, :, 0]
    for stop_now, carry_now in zip(
        stop.unbind(2), carry.unbind(2), strict=True
    ):  # slices would have gradients as large as all
        last = stop_now * recur(carry_now, last)
        alignments.append(last)
    return torch.stack(alignments, dim=2)


def covers(stop: Steps) -> str | None:
    """None where the kernel runs, else the reason it does not."""
    if stop.device.type not in DEVICES:
        return f"needs a GPU, got {stop.device.type}"
    from regard.kernels.runtime import capability

    if not capability.INSTALLED:
        return "needs Triton, which is not installed; pip install triton"
    if stop.dtype not in DTYPES:
        return f"needs float32 or float64, got {str(stop.dtype).removeprefix('torch.')}"
    if not stop.numel() or stop.shape[3] > LONGEST:
        return f"needs 1 to {LONGEST} keys and a query, got {tuple(stop.shape)}"
    if torch.compiler.is_compiling():
        return "cannot be traced"
    return capability.find_obstacle(stop.device)
