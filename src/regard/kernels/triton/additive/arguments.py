"""What the additive kernels are told: both sides of the score, what may be seen, what is dropped, and how to tile."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.kernels.runtime.capability import assembly
from regard.kernels.runtime.tiles import on as launching
from regard.kernels.triton.additive.bitmask import Packed

EVERYWHERE = 1 << 30
"""A window that no sequence reaches the end of."""

WARP = 32
LANES = 1, 2, 4, 8, 16, WARP
"""Among how many threads the keys of one hidden unit may be dealt on the way back: those of a warp at most."""
HIDING = 128
"""Keys of a tile there at most where some are hidden: what nobody sees is passed over by whole tiles."""


class Reading(NamedTuple):
    """How a program reads values by their weights: its queries, keys, dimensions of the value, and warps."""

    rows: int
    columns: int
    values: int
    warps: int


HALF = Reading(64, 64, 256, 8)
THIN = Reading(16, 128, 256, 4)
"""For chunks of so few queries that taller tiles would leave half of the processors without one."""
SINGLE = Reading(16, 128, 64, 4)
"""Single precision is multiplied from registers; the same where a GPU has little shared memory."""


@dataclass(frozen=True)
class Tiles:
    """How large the tiles of each kernel are, and by how many warps each is computed."""

    rows: int = 32
    columns: int = 64
    down: int = 1
    across: int = 64
    """How the threads of `compare` are laid over a tile: as many as its warps have."""
    pairs: int = 4
    """Pairs of hidden units that share a reciprocal, unrolled."""
    warps: int = 2
    registers: int | None = 128
    """That a thread of `compare` has at most there; None: as many as the compiler likes."""
    four_rows: int = 64
    four_columns: int = 128
    four_down: int = 8
    four_across: int = 16
    four_warps: int = 4
    four_stages: int = 3
    """Of `compare` where it takes four hidden units at a time; half as many columns where keys end in the first half."""
    four_least: int = 33
    """Queries of a head from which on it does, if they are in bfloat16: fewer leave most of such a tile empty."""
    splits: int = 8
    """Among how many programs the hidden units of a tile are spread at most, where there are few tiles."""
    read: Reading = HALF
    read_thin: Reading = THIN
    read_single: Reading = SINGLE
    slope_rows: int = 2
    slope_columns: int = 512
    row_warps: int = 4
    """Of weights and of slopes."""
    both: int = 16
    """Keys of a hidden unit that a thread has on the way back, which finds the gradients of both sides in one pass."""
    both_rows: int = 32
    both_warps: int = 4
    both_registers: int | None = 128
    both_parts: int = 4
    """That such a pass leaves of one gradient, if that can be."""
    kept: float = 0.4
    """How many times the bytes of the inputs the scores may take from the way there to the way back, which finds them anew
    where they would take more, where there is no room for all at once, and under torch.compile."""
    step_bytes: int = 16 << 10
    """Of a block of keys, or of values, of one query: all hidden units of as many keys as that is."""
    step_keys: int = 8
    """Of such a block at most; four times as many where few heads have many keys."""
    step_numbers: int = 64
    """Of a block of keys that a thread has: so many threads."""
    step_threads: int = 512
    """On a processor, by which the programs of one query are counted, and of one program at most."""
    step_parts: int = 128
    """Of one query at most: whoever ends last joins them."""
    step_stages: int = 2
    """How many such blocks are under way at a time, by copies to shared memory where it is more than one."""
    step_columns: int = 32
    step_units: int = 128
    """Of a block of keys on the way back of one query."""
    step_warps: int = 2
    precision: str = "ieee"
    """Of the product of single-precision weights and values: ieee, tf32x3 or tf32."""
    room: int | None = None
    """Bytes held at a time for scores and both sides; None: in proportion to the inputs, but not below `least`."""
    least: int = 7 << 20
    """Bytes that may always be held: in smaller chunks the host takes longer to launch than an H200 to compute."""
    fill: int = 8
    """Programs of `both` a processor that a chunk of heads has on the way back, if there is room: an H200 runs four."""

    @property
    def tall(self) -> int:
        """Queries are padded to a multiple of it."""
        return max(self.rows, self.slope_rows, self.both_rows, self.four_rows)

    @property
    def wide(self) -> int:
        """Keys are padded to a multiple of it."""
        return max(self.columns, self.four_columns // 2)


class Scoped(NamedTuple):
    """What may be seen: keys that are kept, from `behind` before the query to `ahead` after it, where the mask allows."""

    keep: Bool[Tensor, "batch keys"] | None = None
    bits: Int[Tensor, "#batch #heads #queries words"] | None = None
    """Of a scope that no kernel works out, with its `kinds`: see `packed`."""
    kinds: Int[Tensor, "#batch #heads #tiles words"] | None = None
    offsets: Int[Tensor, " batch"] | None = None
    """The position of the first query of each row; None: `offset` for all."""
    offset: int = 0
    behind: int = EVERYWHERE
    ahead: int = EVERYWHERE

    @property
    def hides(self) -> bool:
        """Whether there is anything that somebody may not see."""
        return self.keep is not None or self.bits is not None or min(self.behind, self.ahead) < EVERYWHERE

    def arguments(self) -> dict[str, Any]:
        """As the kernels name them."""
        steps = [0] * 6
        if self.bits is not None and self.kinds is not None:
            steps = Packed(self.bits, self.kinds).steps()
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


class Dropped(NamedTuple):
    """The share of weights that dropout takes away, and the seed of which."""

    rate: float = 0.0
    seed: Int[Tensor, " one"] | None = None

    def arguments(self) -> dict[str, Any]:
        """As the kernels name them."""
        scale = 1 / (1 - self.rate) if self.rate < 1 else 0.0
        return {"seed": self.seed, "dropout": float(self.rate), "scale": scale, "DROPOUT": self.rate > 0}


class Sides(NamedTuple):
    """Both sides of the score and its vector, as they lie."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch key_heads keys hidden"]
    v: Float[Tensor, "v_heads hidden"]

    @classmethod
    def of(cls, query: Tensor, key: Tensor, v: Tensor) -> "Sides":
        """With nothing between their numbers."""
        return cls(query.contiguous(), key.contiguous(), v.contiguous())

    def sources(self, these: range) -> range:
        """The heads of the keys that these heads of the queries look at, both counted through the batch."""
        groups, shared = self.query.shape[1], self.key.shape[1]
        first, last = (head // groups * shared + head % groups * shared // groups for head in (these[0], these[-1]))
        return range(first, last + 1)


def padded(count: int, tile: int) -> int:
    """As many as fill whole tiles."""
    return -(-count // tile) * tile


def parts(count: int, size: int) -> int:
    """How many of that size it takes."""
    return -(-count // size)


def power(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


def tiled(keys: int, tiles: Tiles, hides: bool, dtype: torch.dtype) -> tuple[int, int]:
    """Among how many threads the keys of a tile are dealt on the way back, and how many tiles there are.

    Those that have the fewest places beyond the keys, and of these the fewest tiles; where some keys are hidden, small ones.
    """
    each = beside(tiles, dtype)
    able = [lanes for lanes in LANES if parts(keys, lanes * each) <= tiles.both_parts] or [WARP]
    small = [lanes for lanes in able if lanes * each <= HIDING or not hides] or able[:1]
    across = min(small, key=lambda lanes: (padded(keys, lanes * each), -lanes))
    return across, parts(keys, across * each)


def beside(tiles: Tiles, dtype: torch.dtype) -> int:
    """Keys of a thread there: half of them in single precision, in which it holds two sums for each."""
    return max(4, tiles.both // 2) if dtype == torch.float32 else tiles.both


def by_four(sides: Sides, tiles: Tiles) -> bool:
    """Whether `compare` takes four hidden units at a time: many queries in bfloat16, on a chip that multiplies tf32.

    Of float16, which holds three bits more, tf32 would lose some.
    """
    same = sides.query.dtype == sides.key.dtype == torch.bfloat16
    return same and sides.query.shape[2] >= tiles.four_least and multiplies(sides.query.device)


@cache
def multiplies(device: torch.device) -> bool:
    """Whether its tensor cores know tf32; the interpreter needs none."""
    if device.type != "cuda":
        return True
    return torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def processors(device: torch.device) -> int:
    """How many there are to keep busy; on a CPU, where the interpreter runs, two."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def heads(query: Tensor, key: Tensor, v: Tensor) -> dict[str, int]:
    """How many heads there are, and among how many sets of keys and vectors they are spread."""
    return {"heads": query.shape[1], "key_heads": key.shape[1], "v_heads": v.shape[0]}


def limit(registers: int | None) -> dict[str, int]:
    """How many registers a thread may have, as NVIDIA's compiler is told; nobody else knows the word."""
    return {"maxnreg": registers} if registers and assembly() else {}


def on(data: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be that of the data."""
    return launching(data.device)
