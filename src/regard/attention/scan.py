"""Recurrences along the keys, worked out for all keys at once by doubling how far each looks back."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

Along = Float[Tensor, "*rows keys"]
Parts = tuple[Tensor, ...]

DOUBLINGS = 20
"""How often an exported program doubles, whose lengths stay open: enough for a million keys."""


def recur(carry: Along, enter: Along) -> Along:
    """What is carried from key to key along the last axis, beginning with nothing.

        x_j = carry_j x_{j-1} + enter_j,    x_{-1} = 0

    There are only products and sums of what is given, so that positive numbers stay as exact as they come: no division, no
    logarithm, and no zero that would have to be kept away from one.
    Hillis and Steele 1986, "Data parallel algorithms", https://doi.org/10.1145/7902.7903
    Cost: time O(S log S) in log S steps, memory S: the gradient is the same recurrence from the other end.
    """
    if torch.compiler.is_exporting():
        return doubled(carry, enter)
    if torch.compiler.is_compiling():
        return traced(carry, enter)
    found: Tensor = Recurrence.apply(carry, enter)  # type: ignore[no-untyped-call]
    return found


def doubled(carry: Tensor, enter: Tensor) -> Tensor:
    """`recur` in plain steps: two stretches in a row, x -> c x + e and then x -> c' x + e', are one."""
    found = scan(lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1]), (carry, enter))[1]
    return found.clone() if found is enter else found.contiguous()  # what an operator gives may not be what it got


def backward(gradient: Tensor, carry: Tensor, found: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of `recur`, from the last key to the first."""
    flowing = recur(before(carry.flip(-1)), gradient.flip(-1)).flip(-1)
    return flowing * before(found), flowing


class Recurrence(torch.autograd.Function):
    """`recur` for eager PyTorch, which keeps its result for the gradient, and not every doubling."""

    @staticmethod
    def forward(carry: Tensor, enter: Tensor) -> Tensor:
        return doubled(carry, enter)

    @staticmethod
    def setup_context(ctx: Any, inputs: Parts, output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return backward(gradient, *ctx.saved_tensors)


# The same as an operator that torch.compile does not look into: unrolled for any length, it would compile for very long.
traced = torch.library.custom_op("regard::recur", doubled, mutates_args=())
traced.register_fake(lambda carry, enter: torch.empty_like(enter, memory_format=torch.contiguous_format))
traced.register_autograd(
    lambda ctx, gradient: backward(gradient, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], output),
)


def scan(join: Callable[[Parts, Parts], Parts], parts: Parts) -> Parts:
    """Everything up to each key, joined: p_0 ∘ p_1 ∘ ... ∘ p_j along the last axis.

    `join` takes the left and the right of two neighbouring stretches, both with all their parts, and must be associative.
    """
    keys = parts[0].shape[-1]
    place = torch.arange(keys, device=parts[0].device)
    for doubling in range(doublings(keys)):
        reach = 2**doubling
        joined = join(tuple(torch.roll(part, reach, -1) for part in parts), parts)
        parts = tuple(torch.where(place >= reach, *pair) for pair in zip(joined, parts, strict=True))
    return parts


def doublings(keys: int) -> int:
    """How often to double until the last key looks back to the first."""
    return DOUBLINGS if torch.compiler.is_exporting() else max(keys - 1, 0).bit_length()


def before(data: Along, steps: int = 1, fill: float = 0.0) -> Along:
    """What stands some steps before each key, and `fill` where nothing does."""
    return F.pad(data, (steps, 0), value=fill)[..., : data.shape[-1]]
