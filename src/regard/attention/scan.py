"""Parallel scan: linear recurrences along the keys by recursive doubling."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

Along = Float[Tensor, "*rows keys"]
Parts = tuple[Tensor, ...]

DOUBLINGS = 20
"""Doublings of an exported program, whose lengths are dynamic: enough for a million keys."""


def recur(carry: Along, inputs: Along) -> Along:
    """Linear recurrence along the last axis, from zero.

        x_j = carry_j x_{j-1} + inputs_j,    x_{-1} = 0

    There are only products and sums of the inputs, so that positive numbers keep their precision: no division, no logarithm,
    and no clamping away from zero.
    Hillis and Steele 1986, "Data parallel algorithms", https://doi.org/10.1145/7902.7903
    Cost: time O(S log S) in log S steps, memory S: the backward is the same recurrence from the other end.
    """
    if torch.compiler.is_exporting():
        return scan_recurrence(carry, inputs)
    if torch.compiler.is_compiling():
        return recur_operator(carry, inputs)
    states: Tensor = Recurrence.apply(carry, inputs)  # type: ignore[no-untyped-call]
    return states


def scan_recurrence(carry: Tensor, inputs: Tensor) -> Tensor:
    """The scan of `recur`: composes two neighbouring segments, x -> c x + e and then x -> c' x + e'."""
    states = scan(lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1]), (carry, inputs))[1]
    return states.clone() if states is inputs else states.contiguous()  # an operator may not return its input


def run_recurrence_backward(gradient: Tensor, carry: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """Backward of `recur`, from the last key to the first."""
    reversed_states = recur(shift(carry.flip(-1)), gradient.flip(-1)).flip(-1)
    return reversed_states * shift(states), reversed_states


class Recurrence(torch.autograd.Function):
    """Autograd function of `recur` for eager PyTorch: saves its result, and not every doubling."""

    @staticmethod
    def forward(carry: Tensor, inputs: Tensor) -> Tensor:
        return scan_recurrence(carry, inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Parts, output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return run_recurrence_backward(gradient, *ctx.saved_tensors)


# A custom operator, opaque to torch.compile: unrolled for any length, it would compile for very long.
recur_operator = torch.library.custom_op("regard::recur", scan_recurrence, mutates_args=())
recur_operator.register_fake(lambda carry, inputs: torch.empty_like(inputs, memory_format=torch.contiguous_format))
recur_operator.register_autograd(
    lambda ctx, gradient: run_recurrence_backward(gradient, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], output),
)


def scan(join: Callable[[Parts, Parts], Parts], parts: Parts) -> Parts:
    """Inclusive scan p_0 ∘ p_1 ∘ ... ∘ p_j along the last axis.

    `join` takes the left and the right of two neighbouring segments, both with all their parts, and must be associative.
    """
    keys = parts[0].shape[-1]
    position = torch.arange(keys, device=parts[0].device)
    for doubling in range(count_doublings(keys)):
        reach = 2**doubling
        joined = join(tuple(torch.roll(part, reach, -1) for part in parts), parts)
        parts = tuple(torch.where(position >= reach, *pair) for pair in zip(joined, parts, strict=True))
    return parts


def count_doublings(keys: int) -> int:
    """The number of doublings until the last key reaches the first."""
    return DOUBLINGS if torch.compiler.is_exporting() else max(keys - 1, 0).bit_length()


def shift(data: Along, steps: int = 1, fill: float = 0.0) -> Along:
    """Shift the data by some steps, with `fill` before the first key."""
    return F.pad(data, (steps, 0), value=fill)[..., : data.shape[-1]]
