"""Fused residual sum and layer norm of a decoder step, by Triton on a GPU."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.kernels.runtime import capability

Rows = Float[Tensor, "rows size"]
WIDEST = 8192
"""Maximum row length: the kernel holds a row in registers."""


def add_norm(
    data: Rows, output: Rows, weight: Float[Tensor, " size"], bias: Float[Tensor, " size"], eps: float
) -> tuple[Rows, Rows]:
    """Residual sum data + output, and its layer norm.

        x = data + output,   norm = (x - mean(x)) / √(var(x) + ε) ∘ w + b

    Ba, Kiros and Hinton 2016, https://arxiv.org/abs/1607.06450
    """
    if fits(data):
        return load_kernel().launch(data, output, weight, bias, eps)
    total = data + output
    return total, F.layer_norm(total, weight.shape, weight, bias, eps)


def fits(data: Rows) -> bool:
    """Return True if the kernel covers such data."""
    some = data.is_cuda and data.shape[1] <= WIDEST and not torch.compiler.is_compiling()
    return some and capability.find_obstacle(data.device, data.dtype) is None and load_kernel() is not None


@cache
def load_kernel() -> Any:
    """Load the module of the kernel; None without Triton."""
    return None if find_spec("triton") is None else import_module("regard.decoding.engines.cuda.add_norm_triton")
