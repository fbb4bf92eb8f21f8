"""What the additive kernels are told: both sides of the score, what may be seen, what is dropped, and how to tile."""

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

EVERYWHERE = 1 << 30
"""A window that no sequence reaches the end of."""


@dataclass(frozen=True)
class Tiles:
    """How large the tiles of each kernel are, and by how many warps each is computed."""

    rows: int = 32
    columns: int = 32
    pairs: int = 4
    """Pairs of hidden units that share a reciprocal, unrolled."""
    values: int = 512
    """Dimensions of the value that one program sums; for more, scores are computed again."""
    warps: int = 8
    gather_rows: int = 32
    gather_columns: int = 16
    gather_units: int = 64
    gather_warps: int = 4
    step_columns: int = 16
    step_units: int = 256
    step_warps: int = 4
    precision: str = "ieee"
    """Of the product of single-precision weights and values: ieee, tf32x3 or tf32."""
    chunk: int | None = None
    """Scores held at a time on the way back; None: as many as need the bytes of the inputs."""


class Scoped(NamedTuple):
    """What may be seen: keys that are kept, from `behind` before the query to `ahead` after it, where the mask allows."""

    keep: Bool[Tensor, "batch keys"] | None = None
    mask: Bool[Tensor, "#batch #heads #queries keys"] | None = None
    offsets: Int[Tensor, " batch"] | None = None
    """The position of the first query of each row; None: `offset` for all."""
    offset: int = 0
    behind: int = EVERYWHERE
    ahead: int = EVERYWHERE

    def arguments(self) -> dict[str, Any]:
        """As the kernels name them. The mask is read by tiles where it lies: an axis of one has a stride of 0."""
        strides = [0] * 4
        if self.mask is not None:
            strides = [0 if size == 1 else stride for size, stride in zip(self.mask.shape, self.mask.stride(), strict=True)]
        return {
            "keep": None if self.keep is None else self.keep.contiguous(),
            "mask": self.mask,
            "offsets": self.offsets,
            "first": self.offset,
            "behind": self.behind,
            "ahead": self.ahead,
            "KEEP": self.keep is not None,
            "MASK": self.mask is not None,
            "OFFSETS": self.offsets is not None,
            **dict(zip(("mask_b", "mask_h", "mask_t", "mask_s"), strides, strict=True)),
        }


class Dropped(NamedTuple):
    """The share of weights that dropout takes away, and the seed of which."""

    rate: float = 0.0
    seed: Int[Tensor, " one"] | None = None

    def arguments(self) -> dict[str, Any]:
        """As the kernels name them."""
        scale = 1 / (1 - self.rate) if self.rate < 1 else 0.0
        return {"seed": self.seed, "dropout": self.rate, "scale": scale, "DROPOUT": self.rate > 0}


class Sides(NamedTuple):
    """Both sides of the score and its vector, and the largest |x| of each query and key."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch key_heads keys hidden"]
    v: Float[Tensor, "v_heads hidden"]
    query_reach: Float[Tensor, "batch heads queries"]
    key_reach: Float[Tensor, "batch key_heads keys"]

    @classmethod
    def of(cls, query: Tensor, key: Tensor, v: Tensor) -> "Sides":
        """Both sides as they lie, measured."""
        query, key = query.contiguous(), key.contiguous()
        return cls(query, key, v.contiguous(), reach(query), reach(key))

    def arguments(self, tiles: Tiles) -> dict[str, Any]:
        """As the kernels that compare name them, with both sides feature-major: a program reads one unit of a whole tile."""
        hidden = self.query.shape[3]
        return {
            "query": self.query.mT.contiguous(),
            "key": self.key.mT.contiguous(),
            "v": self.v,
            "query_reach": self.query_reach,
            "key_reach": self.key_reach,
            **heads(self.query, self.key, self.v),
            "T": self.query.shape[2],
            "S": self.key.shape[2],
            "D": hidden,
            "PAIRS": tiles.pairs,
            "EVEN": hidden % (2 * tiles.pairs) == 0,
            "ASSEMBLY": assembly(),
            "ROWS": tiles.rows,
            "COLUMNS": tiles.columns,
            "num_warps": tiles.warps,
        }


def heads(query: Tensor, key: Tensor, v: Tensor) -> dict[str, int]:
    """How many heads there are, and among how many sets of keys and vectors they are spread."""
    return {"heads": query.shape[1], "key_heads": key.shape[1], "v_heads": v.shape[0]}


def reach(data: Float[Tensor, "batch heads time hidden"]) -> Float[Tensor, "batch heads time"]:
    """max |x|. NaN has none, and does not hide that of its neighbours."""
    low, high = torch.aminmax(data, dim=-1)
    return torch.maximum(high, -low).float().nan_to_num_(nan=0.0, posinf=torch.inf)


def assembly() -> bool:
    """Whether kernels may hold NVIDIA's assembly: the interpreter knows none, and AMD's GPUs another."""
    return os.environ.get("TRITON_INTERPRET") != "1" and torch.version.hip is None


def on(data: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be that of the data."""
    return torch.cuda.device(data.device) if data.is_cuda else nullcontext()
