"""Arguments of the additive kernels: q, k and v of the score, mask, dropout, and tile sizes."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.kernels.runtime.capability import allows_assembly
from regard.kernels.runtime.tiles import use_device as launching
from regard.kernels.triton.additive.bitmask import Bitmask

UNBOUNDED = 1 << 30
"""A window wider than any sequence."""

WARP = 32
LANES = 1, 2, 4, 8, 16, WARP
"""Threads that may share the keys of one hidden unit in the backward: a warp at most."""
MASKED_KEYS = 128
"""The most keys of a tile of the backward under a mask, so that empty tiles can be skipped."""


class ReadTile(NamedTuple):
    """Tile of the product of weights and values: queries, keys, dimensions of the value, and warps."""

    rows: int
    columns: int
    values: int
    warps: int


HALF = ReadTile(64, 64, 256, 8)
THIN = ReadTile(16, 128, 256, 4)
"""Tile for chunks of few queries, where taller tiles would leave half of the multiprocessors idle."""
SINGLE = ReadTile(16, 128, 64, 4)
"""Tile for float32, which is multiplied from registers, and for GPUs with little shared memory."""


@dataclass(frozen=True)
class Tiles:
    """Tile sizes and warps of each kernel."""

    rows: int = 32
    columns: int = 64
    down: int = 1
    across: int = 64
    """Thread layout of `compare_kernel` over a tile, whose product is the threads of its warps."""
    pairs: int = 4
    """Pairs of hidden units that share a reciprocal, unrolled."""
    warps: int = 2
    registers: int | None = 128
    """Register limit per thread of `compare_kernel` by pairs; None: up to the compiler."""
    four_rows: int = 64
    four_columns: int = 128
    four_down: int = 8
    four_across: int = 16
    four_warps: int = 4
    four_stages: int = 3
    """Tile of `compare_kernel` with four hidden units at a time; half the columns where the keys fit in the first half."""
    four_least: int = 33
    """Queries of a head from which on bfloat16 takes four units at a time: fewer leave most of such a tile empty."""
    splits: int = 8
    """The most programs that split the hidden units of a tile, where there are few tiles."""
    read: ReadTile = HALF
    read_thin: ReadTile = THIN
    read_single: ReadTile = SINGLE
    slope_rows: int = 2
    slope_columns: int = 512
    row_warps: int = 4
    """Tile of dScores, and warps of the kernels of weights and dScores."""
    both: int = 16
    """Keys per thread and hidden unit in the backward, which computes dQ and dK in one pass."""
    both_rows: int = 32
    both_warps: int = 4
    both_registers: int | None = 128
    both_parts: int = 4
    """The most partial sums of a gradient that such a pass writes, if possible."""
    saved_scores: float = 0.4
    """The size of scores saved for the backward, relative to the inputs: it recomputes them where they would be larger,
    where they need several chunks, and under torch.compile."""
    step_bytes: int = 16 << 10
    """Bytes of a block of keys, or of values, of one query: all hidden units of as many keys as fit."""
    step_keys: int = 8
    """The most keys of such a block; four times as many where few heads have many keys."""
    step_numbers: int = 64
    """Elements of a block of keys per thread."""
    step_threads: int = 512
    """Threads per multiprocessor, which determine the programs of one query, and the most of one program."""
    step_parts: int = 128
    """The most splits (split-K) of one query; the last program to end combines them."""
    step_stages: int = 2
    """Pipeline stages of such blocks, with asynchronous copies to shared memory if more than one."""
    step_columns: int = 32
    step_units: int = 128
    """Block of keys and hidden units in the backward of one query."""
    step_warps: int = 2
    precision: str = "ieee"
    """Input precision of the product of float32 weights and values: ieee, tf32x3 or tf32."""
    room: int | None = None
    """Workspace in bytes for scores, q and k; None: in proportion to the inputs, but not below `least`."""
    least: int = 7 << 20
    """The least workspace in bytes: smaller chunks take the host longer to launch than an H200 to compute."""
    fill: int = 8
    """Programs of `backward_qkv` per multiprocessor in a chunk of the backward, memory permitting: an H200 runs four."""

    @property
    def tall(self) -> int:
        """The multiple to which queries are padded."""
        return max(self.rows, self.slope_rows, self.both_rows, self.four_rows)

    @property
    def wide(self) -> int:
        """The multiple to which keys are padded."""
        return max(self.columns, self.four_columns // 2)


class MaskArguments(NamedTuple):
    """Mask arguments: padding mask, window from `behind` before the query to `ahead` after it, and bitmask."""

    keep: Bool[Tensor, "batch keys"] | None = None
    bits: Int[Tensor, "#batch #heads #queries words"] | None = None
    """Bitmask of a scope that the kernels do not compute, with its `kinds`: see `bitmask.Bitmask`."""
    kinds: Int[Tensor, "#batch #heads #tiles words"] | None = None
    offsets: Int[Tensor, " batch"] | None = None
    """The position of the first query of each row; None: `offset` for all."""
    offset: int = 0
    behind: int = UNBOUNDED
    ahead: int = UNBOUNDED

    @property
    def hides(self) -> bool:
        """True if any query has a masked key."""
        return self.keep is not None or self.bits is not None or min(self.behind, self.ahead) < UNBOUNDED

    def arguments(self) -> dict[str, Any]:
        """The fields under the names of the kernels' arguments."""
        steps = [0] * 6
        if self.bits is not None and self.kinds is not None:
            steps = Bitmask(self.bits, self.kinds).steps()
        return {
            "keep": None if self.keep is None else self.keep.contiguous(),
            "bits": self.bits,
            "kinds": self.kinds,
            "offsets": self.offsets,
            "first": self.offset,
            "behind": self.behind,
            "ahead": self.ahead,
            "KEEP": self.keep is not None,
            "MASK": self.bits is not None,
            "OFFSETS": self.offsets is not None,
            **dict(zip(("bit_b", "bit_h", "bit_t", "kind_b", "kind_h", "kind_t"), steps, strict=True)),
        }


class Dropout(NamedTuple):
    """Dropout probability of the weights, and its seed."""

    rate: float = 0.0
    seed: Int[Tensor, " one"] | None = None

    def arguments(self) -> dict[str, Any]:
        """The fields under the names of the kernels' arguments."""
        scale = 1 / (1 - self.rate) if self.rate < 1 else 0.0
        return {"seed": self.seed, "dropout": float(self.rate), "scale": scale, "DROPOUT": self.rate > 0}


class ScoreInputs(NamedTuple):
    """q, k and v of the score with dense last axes."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch key_heads keys hidden"]
    v: Float[Tensor, "v_heads hidden"]

    @classmethod
    def of(cls, query: Tensor, key: Tensor, v: Tensor) -> "ScoreInputs":
        """Make all of them contiguous."""
        return cls(query.contiguous(), key.contiguous(), v.contiguous())

    def sources(self, these: range) -> range:
        """The key heads of these query heads, both numbered through the batch."""
        groups, shared = self.query.shape[1], self.key.shape[1]
        first, last = (head // groups * shared + head % groups * shared // groups for head in (these[0], these[-1]))
        return range(first, last + 1)


def round_up(count: int, tile: int) -> int:
    """Round up to whole tiles."""
    return -(-count // tile) * tile


def parts(count: int, size: int) -> int:
    """Ceiling division."""
    return -(-count // size)


def next_power(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


def split_keys(keys: int, tiles: Tiles, hides: bool, dtype: torch.dtype) -> tuple[int, int]:
    """Threads that share the keys of a tile in the backward, and the number of tiles.

    The choice has the least padding, and then the fewest tiles; under a mask the tiles are small.
    """
    keys_per_thread = count_keys_per_thread(tiles, dtype)
    able = [lanes for lanes in LANES if parts(keys, lanes * keys_per_thread) <= tiles.both_parts] or [WARP]
    small = [lanes for lanes in able if lanes * keys_per_thread <= MASKED_KEYS or not hides] or able[:1]
    across = min(small, key=lambda lanes: (round_up(keys, lanes * keys_per_thread), -lanes))
    return across, parts(keys, across * keys_per_thread)


def count_keys_per_thread(tiles: Tiles, dtype: torch.dtype) -> int:
    """Keys per thread of the backward: half of them in float32, in which it holds two sums for each."""
    return max(4, tiles.both // 2) if dtype == torch.float32 else tiles.both


def uses_tensor_cores(sides: ScoreInputs, tiles: Tiles) -> bool:
    """True if `compare_kernel` takes four hidden units at a time: many queries in bfloat16, on a GPU with tf32.

    Float16 has three mantissa bits more, some of which tf32 would lose.
    """
    same = sides.query.dtype == sides.key.dtype == torch.bfloat16
    return same and sides.query.shape[2] >= tiles.four_least and supports_tf32(sides.query.device)


@cache
def supports_tf32(device: torch.device) -> bool:
    """True if the tensor cores support tf32; the interpreter needs none."""
    if device.type != "cuda":
        return True
    return torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def count_multiprocessors(device: torch.device) -> int:
    """The number of multiprocessors; two on a CPU, where the interpreter runs."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def heads(query: Tensor, key: Tensor, v: Tensor) -> dict[str, int]:
    """The numbers of query heads, key heads and heads of v."""
    return {"heads": query.shape[1], "key_heads": key.shape[1], "v_heads": v.shape[0]}


def limit_registers(registers: int | None) -> dict[str, int]:
    """Launch option for the register limit, which only NVIDIA's compiler takes."""
    return {"maxnreg": registers} if registers and allows_assembly() else {}


def use_device(data: Tensor) -> AbstractContextManager[Any]:
    """Context manager that makes the data's device current, on which Triton launches."""
    return launching(data.device)
