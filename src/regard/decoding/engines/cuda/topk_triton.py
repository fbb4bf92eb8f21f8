"""Triton kernel of `topk.py`: log-softmax and top-k in one pass over the logits, one program for each row."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS
from regard.kernels.runtime import compile

WIDEST, MOST = 65_536, 16
"""Maximum vocabulary, as a row is held in registers, and maximum k, as each token takes a pass over it."""


@triton.jit
@no_type_check
def kernel(logits, values, tokens, vocabulary, forbidden: tl.constexpr, count: tl.constexpr, block: tl.constexpr):
    """Log-softmax log p = (x - max x) - log Σ e^(x - max x), in float32, and its top-k; of equal ones the lowest id."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, block)
    x = tl.load(logits + row * vocabulary + columns, mask=columns < vocabulary, other=float("-inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    share = tl.log(tl.sum(tl.exp(x - top), axis=0))
    x = tl.where(columns < forbidden, float("-inf"), x)
    for place in tl.static_range(count):
        best, where = tl.max(x, axis=0, return_indices=True)
        tl.store(values + row * count + place, (best - top) - share)
        tl.store(tokens + row * count + place, tl.minimum(where, vocabulary - 1).to(tl.int64))  # with NaN it is arbitrary
        x = tl.where(columns == where, float("-inf"), x)


def launch(
    logits: Float[Tensor, "rows vocabulary"], count: int
) -> tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]:
    """Launch the kernel; returns the top-k log-probabilities and their tokens."""
    logits = logits.contiguous()
    rows, vocabulary = logits.shape
    values = torch.empty(rows, count, dtype=torch.float32, device=logits.device)
    tokens = torch.empty(rows, count, dtype=torch.long, device=logits.device)
    block = triton.next_power_of_2(vocabulary)
    warps = min(32, max(1, block // 1024))
    compile.launch(kernel, (rows,), logits, values, tokens, vocabulary, BOS + 1, count, block, num_warps=warps)
    return values, tokens
