"""Linear layers of the CPU engine: x W + b in float32, or quantised to int8."""

import math
import warnings
from collections.abc import Iterable
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.decoding.logprobs import no_distribution_error


class Buffers:
    """Output buffers, one for each width; each batch has its own, so that several may be searched at once."""

    def __init__(self) -> None:
        self.buffers: dict[int, Float[Tensor, "rows width"]] = {}

    def __call__(self, rows: int, width: int) -> Float[Tensor, "rows width"]:
        """Buffer that may alias the result of the last such call: only for short-lived results."""
        buffer = self.buffers.get(width)
        if buffer is None or buffer.shape[0] < rows:
            buffer = self.buffers[width] = torch.empty(rows, width)
        return buffer if buffer.shape[0] == rows else buffer[:rows]


PRECISIONS = ("float32", "int8")


@runtime_checkable
class Affine(Protocol):
    """Linear layer with prepared weights."""

    def __call__(self, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]: ...

    def within(self, rooms: Buffers, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """Output in a reused buffer: only for what is consumed before the next output of its width."""

    def onto(self, before: Float[Tensor, "rows out"], data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """Add x W + b to `before`, in place."""


def prepare_linear(layers: Iterable[nn.Module] | nn.Linear, precision: str = "float32") -> Affine:
    """Prepare a linear layer, or several with the same input, concatenated."""
    linears = [layers] if isinstance(layers, nn.Linear) else [cast(nn.Linear, layer) for layer in layers]
    weight = torch.cat([layer.weight for layer in linears]).detach()
    bias = torch.cat([layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias for layer in linears])
    return prepare_matrix(weight, bias.detach(), precision)


def prepare_matrix(weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"], precision: str = "float32") -> Affine:
    """Prepare a linear layer from a matrix and a bias."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision needs to be one of {', '.join(PRECISIONS)}, got {precision!r}")
    return Float32Linear(weight, bias) if precision == "float32" else Int8Linear(weight, bias)


class Float32Linear:
    """Linear layer in float32, with the matrix transposed: a few rows of x are multiplied faster so."""

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"]):
        self.weight, self.bias, self.out = weight.mT.contiguous(), bias, len(bias)

    def __call__(self, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        return torch.addmm(self.bias, data, self.weight)

    def within(self, rooms: Buffers, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """Output in a reused buffer."""
        return torch.addmm(self.bias, data, self.weight, out=rooms(data.shape[0], self.out))

    def onto(self, before: Float[Tensor, "rows out"], data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """Add x W + b to `before`, in place."""
        return before.add_(self.bias).addmm_(data, self.weight)


class Int8Linear:
    """Linear layer in int8: a scale for each row of the matrix, and one for the data, computed at each call.

        y_o = s_o s_x Σ_i W8_oi x8_i + b_o,    W_o ≈ s_o W8_o,  s_o = max_i |W_oi| / 127

    PyTorch's fbgemm kernels do it; oneDNN ones die of an illegal instruction where a processor announces more than it
    allows.
    """

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"]):
        scales = (weight.abs().amax(1) / 127).clamp_min(1e-12).double()
        engine = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch announces a successor, and has none for a CPU
                zeros = torch.zeros(len(weight), dtype=torch.long)
                rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
                self.packed = torch.ops.quantized.linear_prepack(rounded, bias)
        finally:
            torch.backends.quantized.engine = engine

    def __call__(self, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """x W + b. The kernels turn NaN into some number, or name no cause: so it is looked for before."""
        if not math.isfinite(float(data.sum())) and not bool(data.isfinite().all()):
            raise no_distribution_error()
        output: Tensor = torch.ops.quantized.linear_dynamic(data, self.packed, False)
        return output

    def within(self, rooms: Buffers, data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """Output, newly allocated: these kernels take no buffer."""
        return self(data)

    def onto(self, before: Float[Tensor, "rows out"], data: Float[Tensor, "rows in"]) -> Float[Tensor, "rows out"]:
        """Add x W + b to `before`, in place."""
        return before.add_(self(data))
