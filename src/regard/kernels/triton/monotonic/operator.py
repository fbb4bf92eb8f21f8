"""Expected monotonic alignment as an autograd function."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import triton
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.triton.monotonic import kernel

Steps = Float[Tensor, "batch heads queries keys"]
Step = Float[Tensor, "batch heads 1 keys"]


def expect_alignment(stop: Steps, carry: Steps, start: Step) -> Steps:
    """Probabilities that each query stops at each key."""
    alignment: Tensor = ExpectedAlignment.apply(stop, carry, start)  # type: ignore[no-untyped-call]
    return alignment


class ExpectedAlignment(torch.autograd.Function):
    """Autograd function of a_ij = p_ij q_ij with q_ij = c_ij q_i,j-1 + a_i-1,j."""

    @staticmethod
    def forward(ctx: Any, stop: Tensor, carry: Tensor, start: Tensor) -> Tensor:
        stop, carry, start = stop.contiguous(), carry.contiguous(), start.contiguous()
        alignment, reached = torch.empty_like(stop), torch.empty_like(stop)
        with use_device(stop):
            kernel.forward[build_grid(stop)](
                stop, carry, start, alignment, reached, *stop.shape[2:], **build_tile_arguments(stop)
            )
        ctx.save_for_backward(stop, carry, reached)
        return alignment

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        stop, carry, reached = ctx.saved_tensors
        d_stop, d_carry, d_start = torch.empty_like(stop), torch.empty_like(stop), torch.empty_like(stop[:, :, :1])
        tensors = gradient.contiguous(), stop, carry, reached, d_stop, d_carry, d_start
        with use_device(stop):
            kernel.backward[build_grid(stop)](*tensors, *stop.shape[2:], **build_tile_arguments(stop))
        return d_stop, d_carry, d_start


def use_device(like: Tensor) -> AbstractContextManager[Any]:
    """Context manager that makes the tensor's device current, on which Triton launches."""
    return torch.cuda.device(like.device) if like.is_cuda else nullcontext()


def build_grid(stop: Steps) -> tuple[int]:
    """Grid with one program per row and head."""
    return (stop.shape[0] * stop.shape[1],)


def build_tile_arguments(stop: Steps) -> dict[str, int]:
    """Elements of a program, and its warps."""
    wide = triton.next_power_of_2(stop.shape[3])
    return {"K": wide, "num_warps": min(8, max(1, wide // 128))}
