"""The tensors of a page: each as gzip in base64, under an id that the page's JSON names, within a budget of bytes."""

import base64
import re
import zlib
from typing import Any

import numpy as np

from regard.data.axis import Array

KINDS = {"uint8": "u8", "uint16": "u16", "uint32": "u32", "int32": "i32", "float16": "f16", "float32": "f32"}
"""Names of the types that the page can read; all are little-endian."""

UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}

Ref = dict[str, Any]


class Pack:
    """Tensors that go into a page, and how many bytes of the page they have taken."""

    def __init__(self, budget: int | None = None):
        self.budget, self.used = budget, 0
        self.blocks: dict[str, str] = {}

    def add(self, array: Array) -> Ref:
        """Put a tensor into the page, whatever it takes."""
        return self._put(array, _packed(array))

    def offer(self, array: Array) -> Ref | None:
        """Put a tensor into the page if it still fits."""
        packed = _packed(array)
        if self.budget is not None and self.used + len(packed) > self.budget:
            return None
        return self._put(array, packed)

    def copy(self, shared: int = 1) -> "Pack":
        """Another pack with the same tensors, to try what fits into what is left, or into one of so many parts of that."""
        other = Pack(None if self.budget is None else self.used + (self.budget - self.used) // shared)
        other.blocks, other.used = dict(self.blocks), self.used
        return other

    def become(self, other: "Pack") -> None:
        """Take over what was tried in a copy."""
        self.blocks, self.used = other.blocks, other.used

    def _put(self, array: Array, packed: str) -> Ref:
        name = f"d{len(self.blocks)}"
        self.blocks[name] = packed
        self.used += len(packed)
        return {"data": name, "dtype": KINDS[array.dtype.name], "shape": list(array.shape)}


def size(budget: str | int) -> int:
    """A number of bytes from "16MB", "512 KiB" or a plain number."""
    if isinstance(budget, int):
        return budget
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", budget)
    if not match or match[2].lower() not in UNITS:
        raise ValueError(f"a budget is a size such as 16MB or 512KiB, got {budget!r}")
    return int(float(match[1]) * UNITS[match[2].lower()])


def _packed(array: Array) -> str:
    """gzip in base64; the header holds no time, so that equal traces give equal pages."""
    if array.dtype.name not in KINDS:
        raise TypeError(f"a page holds {', '.join(KINDS)}, got {array.dtype.name}")
    data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    squeeze = zlib.compressobj(level=6, wbits=31)
    return base64.b64encode(squeeze.compress(data) + squeeze.flush()).decode("ascii")
