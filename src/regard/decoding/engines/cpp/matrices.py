"""Weights of the C++ engine: packed for its matrix products, and passed by address."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.decoding.engines.cpp.build import load_library
from regard.decoding.engines.eager.linear import PRECISIONS

QUADS = 4
"""Number of int8 values that are multiplied at once, as in tile.hpp."""
LEVELS = 127
SHIFT = 128
"""Offset of the quantised data, so that it is not negative."""


def find_address(tensor: Tensor | None) -> int | None:
    """Address of a tensor's data; its owner has to live for as long as it is used."""
    return None if tensor is None else tensor.data_ptr()


class OwningStructure(ctypes.Structure):
    """C struct that keeps alive the tensors that it points at."""

    def __init__(self, *arguments: Any, references: Sequence[Any] = ()):
        super().__init__(*arguments)
        self.references = references


class Matrix(OwningStructure):
    """Matrix and bias as a C struct; with no columns it is absent."""

    _fields_ = (
        ("size", ctypes.c_int64),
        ("out", ctypes.c_int64),
        ("weight", ctypes.c_void_p),
        ("rounded", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("start", ctypes.c_void_p),
    )


def make_absent_matrix() -> Matrix:
    """Build an absent matrix."""
    return Matrix(0, 0, None, None, None, None, None)


def pack_panels(weight: Float[Tensor, "out in"]) -> Float[Tensor, "pack_panels in panel"]:
    """Pack the columns of x W, which are rows here, into panels; the last is padded with zeros."""
    wide = load_library().regard_panel()
    filled = F.pad(weight, (0, 0, 0, -len(weight) % wide))
    return filled.view(-1, wide, weight.shape[1]).transpose(1, 2).contiguous()


def build_matrix(weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"], precision: str = "float32") -> Matrix:
    """Build x Wᵀ + b in float32, or in int8 with a scale for each row of the matrix.

    W_o ≈ s_o W8_o,  s_o = max_i |W_oi| / 127
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision needs to be one of {', '.join(PRECISIONS)}, got {precision!r}")
    out, size = weight.shape
    rest = -out % load_library().regard_panel()
    filled = F.pad(bias, (0, rest)).contiguous()
    if precision == "float32":
        laid = pack_panels(weight)
        return Matrix(size, out, find_address(laid), None, find_address(filled), None, None, references=(laid, filled))
    scales = (weight.abs().amax(1) / LEVELS).clamp_min(1e-12)
    rounded = (weight / scales[:, None]).round_().clamp_(-LEVELS, LEVELS)
    start = F.pad(rounded.sum(1).int() * -SHIFT, (0, rest))
    laid = pack_panels(F.pad(rounded, (0, -size % QUADS)))
    fours = laid.view(len(laid), -1, QUADS, laid.shape[2]).transpose(2, 3).to(torch.int8).contiguous()
    scales = F.pad(scales, (0, rest))
    parts = fours, filled, scales, start
    return Matrix(size, out, None, *map(find_address, parts), references=parts)


def build_linear(layers: Sequence[nn.Module], precision: str = "float32") -> Matrix:
    """Concatenate linear layers with the same input into one matrix."""
    weights = [layer.get_parameter("weight").detach() for layer in layers]
    biases = [
        weight.new_zeros(len(weight)) if layer.bias is None else layer.get_parameter("bias").detach()
        for layer, weight in zip(layers, weights, strict=True)
    ]
    return build_matrix(torch.cat(weights), torch.cat(biases), precision)


class Norm(OwningStructure):
    """Layer norm as a C struct; without a weight it is absent."""

    _fields_ = (("weight", ctypes.c_void_p), ("bias", ctypes.c_void_p), ("epsilon", ctypes.c_float))


def build_norm(module: nn.Module) -> Norm:
    """Build a layer norm, or an absent one."""
    if not isinstance(module, nn.LayerNorm):
        return Norm(None, None, 0.0)
    weight = torch.ones(module.normalized_shape) if module.weight is None else module.weight.detach().contiguous()
    bias = torch.zeros(module.normalized_shape) if module.bias is None else module.bias.detach().contiguous()
    return Norm(find_address(weight), find_address(bias), module.eps, references=(weight, bias))
