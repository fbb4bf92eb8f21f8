"""Split of a packed QKV projection into query, key and value."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Parts = tuple[Float[Tensor, "batch time part"], ...]


def split_qkv(whole: Float[Tensor, "batch time size"], count: int) -> Parts:
    """Split the last axis into `count` parts; the backward copies nothing where gradients are contiguous in memory."""
    return SplitQkv.apply(whole, count)  # type: ignore[no-untyped-call]


class SplitQkv(torch.autograd.Function):
    """torch.chunk with a backward that avoids a copy."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, count: int) -> tuple[Tensor, ...]:
        return whole.chunk(count, -1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *flowing: Tensor) -> tuple[Tensor, None]:
        first, (batch, time, part) = flowing[0], flowing[0].shape
        if is_interleaved(flowing):
            return first.as_strided((batch, time, part * len(flowing)), first.stride()), None
        return torch.cat(flowing, dim=-1), None


def is_interleaved(parts: Parts) -> bool:
    """True if tensors of one shape are interleaved in memory, one row of each after the other."""
    first = parts[0]
    begin, width = first.data_ptr(), first.shape[-1]
    row = len(parts) * width
    strides = (first.shape[1] * row, row, 1)
    return all(
        each.stride() == strides and each.data_ptr() == begin + place * width * each.element_size()
        for place, each in enumerate(parts)
    ) and all(each.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() for each in parts)
