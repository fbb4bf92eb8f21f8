"""What programs of one pass are told: tensors by their strides, a scope in the parts that they know, sizes, and tiles."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.runtime import launch_cache
from regard.kernels.runtime.tiles import largest
from regard.kernels.triton.flash.configs import block, down_from, need

APART = 1 << 23
"""Numbers from one row to the next at which rows are put side by side: within a tile programs count in 32 bits."""


class Plan(NamedTuple):
    """Everything that an attention in one pass is told beside its queries, keys and values.

    `bias` has a number for each distance key - query, from the last query's first key on; `centres` where the window of
    each query stands; `keep` which keys are there; `mask` what a scope allows that no program knows. `window` is below 0
    where there is none. `bell` is 0 for no Gaussian around the centre, 1 for one that falls on the weights, 2 for one after
    which they add up to one again. `tiles` are queries, keys, warps and stages of one program, smaller where a GPU has no
    room for them. Where there are centres, `order`, `ends` and `placed` are as `ordered` has them, with its `stretch`.
    """

    bias: Tensor | None
    centres: Tensor | None
    keep: Tensor | None
    mask: Tensor | None
    offsets: Tensor | None
    seed: Tensor | None
    offset: int
    window: int
    causal: bool
    bell: int
    width: float
    scale: float
    dropout: float
    tiles: list[int]
    stretch: int = 1
    order: Tensor | None = None
    ends: Tensor | None = None
    placed: Tensor | None = None


class Asked(NamedTuple):
    """Which statistics a pass has to write. `moments` is 1 for the mean position and 2 for its spread too; `top` how many of
    the largest weights."""

    peak: bool = False
    entropy: bool = False
    moments: int = 0
    received: bool = False
    uniform: bool = False
    top: int = 0


class Found(NamedTuple):
    """What a pass leaves. Of what was not asked for there is nothing, in tensors of no size."""

    context: Tensor
    lse: Tensor
    measured: Tensor
    argmax: Tensor
    best: Tensor
    best_keys: Tensor
    received: Tensor
    uniform: Tensor


class Chosen(NamedTuple):
    """Whose weights are wanted: some queries, some heads or (None) all, the log-sum-exp of all queries if known, and which
    keys, or (None) all."""

    queries: Tensor
    heads: Tensor | None = None
    lse: Tensor | None = None
    keys: range | None = None


def told(query: Tensor, keys: Tensor, values: Tensor, plan: Plan) -> tuple[Any, ...]:
    """What every program of a pass is told in numbers."""
    _, heads, queries, size = query.shape
    first = (
        plan.offset,
        plan.window,
        float(plan.width),
        float(plan.scale),
        float(plan.dropout),
    )  # 2 and 2.0 are compiled apart
    return *first, heads, heads // keys.shape[1], queries, keys.shape[2], size, values.shape[3]


def scoped(plan: Plan) -> tuple[Any, ...]:
    """Bias, windows in their order, keys that are there, what is allowed, and where each row begins."""
    bias = None if plan.bias is None else (plan.bias, *strides(plan.bias, 2))
    centres = None if plan.centres is None else (plan.placed, plan.order, plan.ends, plan.stretch)
    keep = None if plan.keep is None else (plan.keep, plan.keep.stride(0))
    mask = None if plan.mask is None else (plan.mask, *strides(plan.mask, 3))
    return bias, centres, keep, mask, plan.offsets


def flags(plan: Plan) -> dict[str, Any]:
    """What a scope has of the parts that programs are compiled for."""
    return {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0, "BELL": plan.bell}


def sized(query: Tensor, tiles: list[int]) -> dict[str, Any]:
    """What programs are compiled for by their tiles and the precision of the queries."""
    tall, wide, warps, stages = tiles
    sizes = {"M": tall, "N": wide, "D": block(query.shape[3])}
    return {**sizes, "PRECISION": precision(query.dtype), "num_warps": warps, "num_stages": stages}


def precision(dtype: torch.dtype) -> str:
    """Single precision is multiplied in single precision: the tensor cores' short form would lose 13 of its bits."""
    return "ieee" if dtype == torch.float32 else "tf32"


def start(program: Any, grid: tuple[int, int], first: tuple[Any, ...], **compiled: Any) -> None:
    """A program with its first arguments in order, and by name what it is compiled for."""
    options = {name: compiled.pop(name) for name in ("num_warps", "num_stages", "maxnreg") if name in compiled}
    launch_cache.start(program, (*grid, 1), compiled, first, **options)


def rows(data: Tensor) -> tuple[Any, ...]:
    """A tensor of (batch, heads, rows, size) as programs take it: rows near each other, of numbers side by side."""
    batch, head, row, one = data.stride()
    if one != 1 or row >= APART:
        data = data.contiguous()
        batch, head, row, _ = data.stride()
    return data, batch, head, row


def strides(data: Tensor, axes: int) -> list[int]:
    """How far apart things stand; 0 along an axis of one, which serves for all."""
    return [0 if data.shape[axis] == 1 else data.stride(axis) for axis in range(axes)]


def fit(
    program: str, start: Callable[[list[int]], None], tiles: list[int], query: Tensor, values: Tensor, whose: str = "flash"
) -> None:
    """Start a program with the largest of these tiles and smaller ones that the GPU has room for.

    Other kernels have programs that hold the same as flash's of that name; what fits is remembered for each kernel.
    """
    sizes = block(query.shape[3]), block(values.shape[3]), query.element_size()
    kind = program, whose, *tiles, *sizes
    largest(start, down_from(tiles), lambda each: need(program, each, *sizes), query.device, kind)
