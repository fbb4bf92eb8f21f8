"""Masked group norm and batch norm as one autograd function on a GPU.

PyTorch's operations take a dozen passes over float32 maps; here a map is read twice and written once, and read twice more
in the backward, in its own precision. Both memory formats (channels first or last) are supported, and the output has that
of the input.
"""

from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
import triton
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.triton.masked_norm import apply, moments

TILE_ELEMENTS = 8192
"""Elements of a map per program."""
MERGE_BLOCK = 64
"""Partial results that are merged per iteration."""
CHANNEL_MERGE, MANY = 8, 512
"""Channels of a program and partial results per iteration, for statistics per channel over all maps."""

Map = Float[Tensor, "batch channels height width"]


class NormOutput(NamedTuple):
    """Output of the norm, and its statistics: of each map, or in one row of all of them."""

    image: Map
    mean: Float[Tensor, "rows channels"]
    variance: Float[Tensor, "rows channels"]
    total: Float[Tensor, " rows"]
    """The number of kept positions."""


class Plan(NamedTuple):
    """Memory layout of a map, its partition into programs, and the elements that share statistics."""

    batch: int
    channels: int
    places: int
    steps: tuple[int, int, int]
    """Strides of maps, channels and positions."""
    tile: int
    wide: int
    groups: int | None

    @classmethod
    def of(cls, image: Map, groups: int | None) -> "Plan":
        batch, channels, height, width = image.shape
        wide, last = triton.next_power_of_2(channels), image.stride(1) == 1 and channels > 1
        steps = (channels * height * width, *((1, channels) if last else (height * width, 1)))
        return cls(batch, channels, height * width, steps, max(TILE_ELEMENTS // wide, 1), wide, groups)

    @property
    def tiles(self) -> int:
        """Programs for one map."""
        return -(-self.places // self.tile)

    @property
    def rows(self) -> int:
        """Rows of statistics of each channel."""
        return 1 if self.groups is None else self.batch

    @property
    def merging(self) -> tuple[tuple[int, int], int, dict[str, Any]]:
        """Grid of the merge kernels, channels of a program, and compile-time arguments."""
        alone = self.groups is None
        group_size = self.channels // self.groups if self.groups else CHANNEL_MERGE
        compiled = {"TILES": MANY if alone else MERGE_BLOCK, "WIDE": triton.next_power_of_2(group_size), "ALONE": alone}
        return (self.rows, -(-self.channels // group_size)), group_size, compiled

    @property
    def cut(self) -> dict[str, Any]:
        """Compile-time arguments of the kernels over positions."""
        return {"TILE": self.tile, "WIDE": self.wide, "num_warps": 8 if self.tile * self.wide > 4096 else 4}


def apply_norm(
    image: Map,
    keep: Bool[Tensor, "batch height width"],
    weight: Float[Tensor, " channels"],
    bias: Float[Tensor, " channels"],
    groups: int | None,
    epsilon: float,
    rectify: bool = False,
    residual: Map | None = None,
) -> NormOutput:
    """Group norm of each map or, without `groups`, batch norm over all maps; 0 outside `keep`.

    With `rectify`, `residual` is added and a ReLU applied.
    """
    return NormOutput(*MaskedNorm.apply(image, keep, weight, bias, groups, epsilon, rectify, residual))  # type: ignore[no-untyped-call]


class MaskedNorm(torch.autograd.Function):
    """Autograd function that saves the map, its statistics and, with a ReLU, its output."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Map,
        keep: Bool[Tensor, "batch height width"],
        weight: Float[Tensor, " channels"],
        bias: Float[Tensor, " channels"],
        groups: int | None,
        epsilon: float,
        rectify: bool,
        residual: Map | None,
    ) -> tuple[Tensor, ...]:
        image, keep = make_dense(image), keep.contiguous().view(torch.uint8)
        plan = Plan.of(image, groups)
        mean, variance, total = _launch_moments(plan, image, keep)
        out = _launch_apply(plan, image, keep, mean, variance, weight, bias, epsilon, rectify, residual)
        ctx.save_for_backward(image, keep, weight, total, mean, variance, out if rectify else image)
        ctx.groups, ctx.epsilon, ctx.rectify = groups, epsilon, rectify
        ctx.residual = None if residual is None else residual.dtype
        ctx.mark_non_differentiable(mean, variance, total)
        return out, mean, variance, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Map, *_: Any) -> tuple[Tensor | None, ...]:
        image, keep, weight, total, mean, variance, out = ctx.saved_tensors
        plan, grad = Plan.of(image, ctx.groups), match_layout(grad, image)
        sum_g, sum_gx = image.new_empty(2, plan.batch, plan.tiles, plan.channels, dtype=torch.float32)
        first, second = torch.empty_like(mean), torch.empty_like(mean)
        d_image = torch.empty_like(image)
        d_residual = None if ctx.residual is None else torch.empty_like(image, dtype=ctx.residual)
        size = plan.channels, plan.places, 0 if plan.groups is None else plan.channels, ctx.epsilon, *plan.steps
        grid, group_size, compiled = plan.merging
        with use_device(image):
            apply.sums[plan.batch, plan.tiles](
                image, keep, mean, variance, out, grad, d_image if d_residual is None else d_residual, sum_g, sum_gx,
                *size, **plan.cut, RECTIFY=ctx.rectify, RESIDUAL=d_residual is not None,
            )  # fmt: skip
            apply.merge[grid](
                total, sum_g, sum_gx, weight, first, second, plan.batch * plan.tiles // plan.rows, plan.channels, group_size,
                **compiled,
            )  # fmt: skip
            apply.backward[plan.batch, plan.tiles](
                image, keep, mean, variance, weight, out, grad, first, second, d_image,
                *size, **plan.cut, RECTIFY=ctx.rectify,
            )  # fmt: skip
        d_weight, d_bias = sum_gx.sum((0, 1)).to(weight.dtype), sum_g.sum((0, 1)).to(weight.dtype)
        return d_image, None, d_weight, d_bias, None, None, None, d_residual


def _launch_moments(plan: Plan, image: Map, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, variance and number of kept elements."""
    counts = image.new_empty(plan.batch, plan.tiles, dtype=torch.float32)
    means, squares = image.new_empty(2, plan.batch, plan.tiles, plan.channels, dtype=torch.float32)
    mean, variance = image.new_empty(2, plan.rows, plan.channels, dtype=torch.float32)
    total = image.new_empty(plan.rows, dtype=torch.float32)
    grid, group_size, compiled = plan.merging
    with use_device(image):
        moments.gather[plan.batch, plan.tiles](
            image, keep, counts, means, squares, plan.channels, plan.places, *plan.steps, **plan.cut
        )
        moments.merge[grid](
            counts, means, squares, mean, variance, total, plan.batch * plan.tiles // plan.rows, plan.channels, group_size,
            **compiled,
        )  # fmt: skip
    return mean, variance, total


def _launch_apply(
    plan: Plan, image: Map, keep: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor,
    epsilon: float, rectify: bool, residual: Map | None,
) -> Map:  # fmt: skip
    """Launch the elementwise forward."""
    out, loaded = torch.empty_like(image), image if residual is None else match_layout(residual, image)
    of_row = 0 if plan.groups is None else plan.channels
    with use_device(image):
        apply.forward[plan.batch, plan.tiles](
            image, keep, mean, variance, weight, bias, loaded, out, plan.channels, plan.places, of_row, epsilon,
            *plan.steps, **plan.cut, RECTIFY=rectify, RESIDUAL=residual is not None,
        )  # fmt: skip
    return out


def make_dense(image: Map) -> Map:
    """The map made dense in its own memory format."""
    last = image.is_contiguous(memory_format=torch.channels_last)
    return image if last or image.is_contiguous() else image.contiguous()


def match_layout(other: Map, image: Map) -> Map:
    """Another map in the memory format of this one."""
    return other if other.stride() == image.stride() else torch.empty_like(image, dtype=other.dtype).copy_(other)


def use_device(image: Map) -> Any:
    """Context manager that makes the map's device current, on which Triton launches."""
    return torch.cuda.device(image.device) if image.is_cuda else nullcontext()
