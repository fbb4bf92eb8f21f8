"""Arguments of the flash kernels: tensors with strides, mask, sizes, and tiles."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.runtime import launch_cache
from regard.kernels.runtime.tiles import launch_largest
from regard.kernels.triton.flash.configs import estimate_shared_memory, list_smaller, round_up

MAX_STRIDE = 1 << 23
"""Row stride from which on rows are made contiguous: offsets within a tile are 32-bit."""


class Plan(NamedTuple):
    """Arguments of the flash kernels other than q, k and v.

    `bias` has one element for each distance key - query, from the last query's first key on; `centres` are those of the
    queries' windows; `keep` is the padding mask; `mask` that of scopes the kernels do not compute. `window` is below 0
    where there is none. `gaussian` is 0 for no Gaussian around the centre, 1 for one that multiplies the weights, 2 for one
    followed by renormalisation. `tiles` are queries, keys, warps and stages of one program, reduced where they do not fit
    on a GPU. With centres, `order`, `ends` and `sorted_centres` are those of `sort_queries`, with its `bin_width`.
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
    gaussian: int
    width: float
    scale: float
    dropout: float
    tiles: list[int]
    bin_width: int = 1
    order: Tensor | None = None
    ends: Tensor | None = None
    sorted_centres: Tensor | None = None


class StatisticsRequest(NamedTuple):
    """Statistics to compute: `moments` is 1 for the mean position, 2 for its variance too; `top` is the k of top-k."""

    peak: bool = False
    entropy: bool = False
    moments: int = 0
    received: bool = False
    uniform: bool = False
    top: int = 0


class ForwardOutput(NamedTuple):
    """Outputs of the forward; statistics that were not requested are empty tensors."""

    context: Tensor
    lse: Tensor
    measured: Tensor
    argmax: Tensor
    best: Tensor
    best_keys: Tensor
    received: Tensor
    uniform: Tensor


class Selection(NamedTuple):
    """Selection of weights: queries, heads (None: all), the log-sum-exp of all queries if known, and keys (None: all)."""

    queries: Tensor
    heads: Tensor | None = None
    lse: Tensor | None = None
    keys: range | None = None


def build_number_arguments(query: Tensor, keys: Tensor, values: Tensor, plan: Plan) -> tuple[Any, ...]:
    """Numeric arguments of every flash kernel."""
    _, heads, queries, size = query.shape
    first = (
        plan.offset,
        plan.window,
        float(plan.width),
        float(plan.scale),
        float(plan.dropout),
    )  # 2 and 2.0 are separate specialisations
    return *first, heads, heads // keys.shape[1], queries, keys.shape[2], size, values.shape[3]


def build_tensor_arguments(plan: Plan) -> tuple[Any, ...]:
    """Tensor arguments: bias, sorted windows, padding mask, mask, and offsets of the rows."""
    bias = None if plan.bias is None else (plan.bias, *broadcast_strides(plan.bias, 2))
    centres = None if plan.centres is None else (plan.sorted_centres, plan.order, plan.ends, plan.bin_width)
    keep = None if plan.keep is None else (plan.keep, plan.keep.stride(0))
    mask = None if plan.mask is None else (plan.mask, *broadcast_strides(plan.mask, 3))
    return bias, centres, keep, mask, plan.offsets


def build_scope_flags(plan: Plan) -> dict[str, Any]:
    """Compile-time flags of the scope."""
    return {"CAUSAL": plan.causal, "WINDOWED": plan.window >= 0, "GAUSSIAN": plan.gaussian}


def build_tile_arguments(query: Tensor, tiles: list[int]) -> dict[str, Any]:
    """Compile-time tile sizes, and the precision of the products."""
    tall, wide, warps, stages = tiles
    sizes = {"M": tall, "N": wide, "D": round_up(query.shape[3])}
    return {**sizes, "PRECISION": select_dot_precision(query.dtype), "num_warps": warps, "num_stages": stages}


def select_dot_precision(dtype: torch.dtype) -> str:
    """Input precision of tl.dot: ieee for float32, since tf32 would lose 13 bits."""
    return "ieee" if dtype == torch.float32 else "tf32"


def launch_kernel(program: Any, grid: tuple[int, int], first: tuple[Any, ...], **compiled: Any) -> None:
    """Launch a kernel with positional arguments, and its compile-time arguments by name."""
    options = {name: compiled.pop(name) for name in ("num_warps", "num_stages", "maxnreg") if name in compiled}
    launch_cache.launch_cached(program, (*grid, 1), compiled, first, **options)


def pack_rows(data: Tensor) -> tuple[Any, ...]:
    """A tensor (batch, heads, rows, size) as a kernel argument: pointer and strides, with dense rows near each other."""
    batch, head, row, one = data.stride()
    if one != 1 or row >= MAX_STRIDE:
        data = data.contiguous()
        batch, head, row, _ = data.stride()
    return data, batch, head, row


def broadcast_strides(data: Tensor, axes: int) -> list[int]:
    """Strides of the first axes; 0 along a broadcast axis."""
    return [0 if data.shape[axis] == 1 else data.stride(axis) for axis in range(axes)]


def launch_fitting(
    program: str, start: Callable[[list[int]], None], tiles: list[int], query: Tensor, values: Tensor, whose: str = "flash"
) -> None:
    """Launch a kernel with the largest of these tiles that fits on the GPU.

    Kernels elsewhere take the estimate of flash's kernel of that name; the tiles that fit are cached for each.
    """
    sizes = round_up(query.shape[3]), round_up(values.shape[3]), query.element_size()
    kind = program, whose, *tiles, *sizes
    launch_largest(
        start, list_smaller(tiles), lambda tile: estimate_shared_memory(program, tile, *sizes), query.device, kind
    )
