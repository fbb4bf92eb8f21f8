"""Accumulation of dQ, dK and dv of additive attention from dScores, chunk by chunk."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.triton.additive.arguments import ScoreInputs, Tiles
from regard.kernels.triton.additive.backward_qkv import GradientOutputs, write_gradients
from regard.kernels.triton.additive.chunks import Chunk
from regard.kernels.triton.additive.plan import build_plan
from regard.kernels.triton.additive.reduce import PartialSums, reduce_gradients


class Gradients(NamedTuple):
    """Gradients of q, k, the values if there are any, and v."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch key_heads keys hidden"]
    value: Float[Tensor, "batch value_heads keys value"] | None
    v: Float[Tensor, "v_heads hidden"]


class GradientSums(NamedTuple):
    """Accumulators of the gradients, per head, and of dv."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch heads keys hidden"]
    v: Float[Tensor, "batch_heads hidden"]
    room: int
    """Workspace of a chunk in bytes."""
    single: Float[Tensor, "1 keys hidden"] | None = None
    """Float32 accumulator of dk of one head, where several chunks of its queries add to it."""

    @classmethod
    def of(cls, sides: ScoreInputs, several: bool, room: int) -> "GradientSums":
        """Allocate the accumulators; `several` is True if a head has several chunks of queries."""
        batch, groups = sides.query.shape[:2]
        shape, single = sides.key.shape[2:], torch.float32
        v = (sides.query.new_zeros if several else sides.query.new_empty)(batch * groups, shape[1], dtype=single)
        one = sides.key.new_empty(1, *shape, dtype=single) if several else None
        return cls(torch.empty_like(sides.query), sides.key.new_empty(batch, groups, *shape), v, room, one)

    def gather(
        self,
        sides: ScoreInputs,
        dscores: Float[Tensor, "some_heads padded_queries padded_keys"],
        chunk: Chunk,
        tiles: Tiles,
        hides: bool,
    ) -> None:
        """Accumulate from dScores of some heads and queries; with `hides` tiles may be empty."""
        plan, heads = build_plan(sides, dscores, tiles, hides, self.room, self.single is not None), chunk.heads
        d_key = slice_chunk(self.key, heads, range(sides.key.shape[2]))
        key = d_key if self.single is None else self.single
        if self.single is not None and chunk.rows.start == 0:
            self.single.zero_()
        targets = slice_chunk(self.query, *chunk), key, self.v[heads.start : heads.stop]
        counts = plan.tiles, plan.shared, plan.tiles * plan.shared
        adds = False, self.single is not None, self.single is not None
        kinds = plan.dtype, plan.dtype, torch.float32
        outputs = GradientOutputs(*map(PartialSums.of, targets, counts, kinds, adds))
        write_gradients(sides, dscores, chunk, outputs, plan, tiles, hides)
        reduce_gradients(*outputs)
        if self.single is not None and chunk.rows.stop == sides.query.shape[2]:
            d_key.copy_(self.single)

    def gradients(self, sides: ScoreInputs, value: Tensor | None) -> Gradients:
        """The gradients of the inputs, summed over heads that share a key or a v."""
        v = self.v.view(self.query.shape[0], sides.v.shape[0], -1, self.v.shape[1]).sum((0, 2))
        return Gradients(self.query, sum_groups(self.key, sides.key), value, v.to(sides.v.dtype))


def slice_chunk(
    data: Float[Tensor, "batch heads time hidden"], heads: range, rows: range
) -> Float[Tensor, "some some_rows hidden"]:
    """Slice some heads, numbered through the batch, and some rows of each; a full slice is free."""
    flat = data.flatten(0, 1)
    whole = len(heads) == flat.shape[0] and len(rows) == flat.shape[1]
    return flat if whole else flat[heads.start : heads.stop, rows.start : rows.stop]


def sum_groups(data: Float[Tensor, "batch heads time size"], like: Float[Tensor, "batch groups time size"]) -> Tensor:
    """The sum over the heads that share one."""
    groups = like.shape[1]
    if groups == data.shape[1]:
        return data.to(like.dtype)
    return torch.unflatten(data, 1, (groups, -1)).sum(2, dtype=torch.float32).to(like.dtype)
