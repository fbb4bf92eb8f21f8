"""Reduction of the partial sums that programs of `backward_qkv` write, for dQ, dK and dv by one launch."""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.runtime.launch_cache import launch_cached
from regard.kernels.triton.additive.arguments import parts

BLOCK = 1024
"""Elements of a program."""


class PartialSums(NamedTuple):
    """A gradient, its first partial sum and the others, and what remains to be reduced.

    Elements of a head are contiguous. With `add` the sum is added to the gradient.
    """

    gradient: Float[Tensor, "some_heads *size"]
    first: Float[Tensor, "some_heads *size"]
    more: Float[Tensor, "others some_heads *size"] | None
    parts: Float[Tensor, "parts some_heads *size"] | None
    add: bool

    @classmethod
    def of(cls, gradient: Float[Tensor, "some_heads *size"], count: int, dtype: torch.dtype, add: bool) -> "PartialSums":
        """Allocate `count` partial sums; the first is the gradient itself unless dtypes differ or they `add` to it."""
        if not add and (count == 1 or dtype == gradient.dtype):
            more = None if count == 1 else gradient.new_empty(count - 1, *gradient.shape)
            return cls(gradient, gradient, more, more, True)
        sums = gradient.new_empty(count, *gradient.shape, dtype=dtype)
        return cls(gradient, sums[0], None if count == 1 else sums[1:], sums, add)

    def arguments(self, name: str) -> dict[str, object]:
        """The fields under the names of the kernel's arguments."""
        return {
            f"{name}_parts": self.gradient if self.parts is None else self.parts,
            f"{name}_gradient": self.gradient,
            f"{name}_blocks": 0 if self.parts is None else parts(self.gradient.numel(), BLOCK),
            f"{name}_count": 0 if self.parts is None else len(self.parts),
            f"{name}_size": self.gradient[0].numel(),
            f"{name}_step": self.gradient.stride(0),
            f"{name}_all": self.gradient.numel(),
            f"{name}_add": int(self.add),
        }


def reduce_gradients(query: PartialSums, key: PartialSums, v: PartialSums) -> None:
    """Reduce the partial sums of all three gradients that are not yet in place."""
    if query.parts is None and key.parts is None and v.parts is None:
        return
    arguments = {**query.arguments("query"), **key.arguments("key"), **v.arguments("v"), "BLOCK": BLOCK}
    programs = sum(arguments[f"{name}_blocks"] for name in ("query", "key", "v"))  # type: ignore[misc]
    launch_cached(reduce_kernel, (programs, 1, 1), arguments, num_warps=4)


@triton.jit(
    do_not_specialize=[
        "query_blocks", "key_blocks", "query_count", "key_count", "v_count", "query_size", "key_size", "v_size",
        "query_step", "key_step", "v_step", "query_all", "key_all", "v_all", "query_add", "key_add", "v_add",
    ]
)  # fmt: skip
@no_type_check
def reduce_kernel(
    query_parts, query_gradient, key_parts, key_gradient, v_parts, v_gradient, query_blocks, key_blocks,
    query_count, query_size, query_step, query_all, key_count, key_size, key_step, key_all, v_count, v_size, v_step, v_all,
    query_add, key_add, v_add, BLOCK: tl.constexpr,
):  # fmt: skip
    """Reduction kernel: the first programs have dQ, then dK, then dv."""
    number = tl.program_id(0)
    if number < query_blocks:
        reduce_block(query_parts, query_gradient, number, query_count, query_size, query_step, query_all, query_add, BLOCK)
    elif number < query_blocks + key_blocks:
        reduce_block(key_parts, key_gradient, number - query_blocks, key_count, key_size, key_step, key_all, key_add, BLOCK)
    else:
        reduce_block(v_parts, v_gradient, number - query_blocks - key_blocks, v_count, v_size, v_step, v_all, v_add, BLOCK)


@triton.jit
@no_type_check
def reduce_block(parts, gradient, number, count, size, step, whole, add, BLOCK: tl.constexpr):
    """Sum `count` partial sums of `whole` elements, `size` per head, whose stride in the gradient is `step`."""
    cells = number.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = cells < whole
    gradient += cells // size * step + cells % size
    total = tl.load(gradient, mask=inside & (add != 0), other=0.0).to(tl.float32)
    for part in range(count):
        total += tl.load(parts + tl.cast(part, tl.int64) * whole + cells, mask=inside, other=0.0).to(tl.float32)
    tl.store(gradient, total.to(gradient.dtype.element_ty), mask=inside)
