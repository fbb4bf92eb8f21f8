"""x W + b, for a matrix that is used at every step: in float32, or rounded to int8."""

import math
import warnings
from collections.abc import Iterable
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.decoding.engines.cpu.buffers import Rooms
from regard.decoding.logprobs import undistributed

PRECISIONS = ("float32", "int8")


@runtime_checkable
class Affine(Protocol):
    """A matrix and a bias, ready to be used."""

    def __call__(self, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]: ...

    def within(self, rooms: Rooms, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """The same, perhaps in a room: only for what is used up before another of its width is found."""

    def onto(self, before: Float[Tensor, "rows out"], data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """before + x W + b, in the place of what was before."""


def affine(layers: Iterable[nn.Module] | nn.Linear, precision: str = "float32") -> Affine:
    """A linear layer, or several that read the same input, side by side."""
    each = [layers] if isinstance(layers, nn.Linear) else [cast(nn.Linear, layer) for layer in layers]
    weight = torch.cat([layer.weight for layer in each]).detach()
    bias = torch.cat([layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias for layer in each])
    return matrix(weight, bias.detach(), precision)


def matrix(weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"], precision: str = "float32") -> Affine:
    """The same from a matrix and a bias."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision needs to be one of {', '.join(PRECISIONS)}, got {precision!r}")
    return Single(weight, bias) if precision == "float32" else Rounded(weight, bias)


class Single:
    """The matrix stands as it is multiplied, in rows of its output: a few rows of x go through it faster so."""

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"]):
        self.weight, self.bias, self.out = weight.mT.contiguous(), bias, len(bias)

    def __call__(self, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        return torch.addmm(self.bias, data, self.weight)

    def within(self, rooms: Rooms, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """The same in a room."""
        return torch.addmm(self.bias, data, self.weight, out=rooms(data.shape[0], self.out))

    def onto(self, before: Float[Tensor, "rows out"], data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """before + x W + b, in the place of what was before."""
        return before.add_(self.bias).addmm_(data, self.weight)


class Rounded:
    """Each row of the matrix in 8 bits with a scale of its own; the data in 8 bits with one scale, found at each call.

        y_o = s_o s_x Σ_i W8_oi x8_i + b_o,    W_o ≈ s_o W8_o,  s_o = max_i |W_oi| / 127

    PyTorch's fbgemm kernels do it; its oneDNN ones die of an illegal instruction where a processor announces more than it
    allows.
    """

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"]):
        scales = (weight.abs().amax(1) / 127).clamp_min(1e-12).double()
        engine = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch announces another way to make such tensors, and has none for a CPU
                zeros = torch.zeros(len(weight), dtype=torch.long)
                rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
                self.packed = torch.ops.quantized.linear_prepack(rounded, bias)
        finally:
            torch.backends.quantized.engine = engine

    def __call__(self, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """x W + b. The kernels turn NaN into some number, or name no cause: so it is looked for before."""
        if not math.isfinite(float(data.sum())) and not bool(data.isfinite().all()):
            raise undistributed()
        found: Tensor = torch.ops.quantized.linear_dynamic(data, self.packed, False)
        return found

    def within(self, rooms: Rooms, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """The same: these kernels make their own room."""
        return self(data)

    def onto(self, before: Float[Tensor, "rows out"], data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """before + x W + b, in the place of what was before."""
        return before.add_(self(data))
