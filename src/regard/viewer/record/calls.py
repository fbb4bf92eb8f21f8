"""One call of an attention as it is kept: on the host, in half precision, with statistics that were exact before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.attend import align_offset
from regard.attention.module import Attention
from regard.attention.normalise import widen
from regard.attention.scope.padding import Padding
from regard.attention.stateful import Stateful
from regard.attention.statistics import measure
from regard.attention.types import Attended, Memory
from regard.data.axis import Array
from regard.viewer.record.hooks import STATISTICS, Listening


@dataclass(frozen=True, eq=False)
class Call:
    """Record of one call of an attention, batch first.

    `weights` are (batch, heads, queries, keys), of the chosen `rows` alone where there are any. `allowed` is as small as it
    can be, and broadcasts. `keep` is True where a key is there, `itself` whether the queries are the keys. `grid` is the
    height and width of a feature map.
    """

    batch: int
    queries: int
    keys: int
    source: str
    weights: Array | None = None
    statistics: Mapping[str, Array] = field(default_factory=dict)
    allowed: Array | None = None
    keep: Array | None = None
    itself: bool = False
    sums_to_one: bool = True
    rows: tuple[int, ...] | None = None
    scores: Array | None = None
    values: Array | None = None
    grid: tuple[int, int] | None = None

    @property
    def bytes(self) -> int:
        """Size in memory, in bytes."""
        arrays = (self.weights, self.allowed, self.keep, self.scores, self.values, *self.statistics.values())
        return sum(array.nbytes for array in arrays if array is not None)


@torch.no_grad()
def heard(
    module: Attention, query: Tensor, memory: Memory, offset: Any, attended: Attended, ear: Listening, itself: bool
) -> Call:
    """The call that an attention has just answered."""
    (batch, queries), keys = query.shape[:2], memory.keys.shape[2]
    weights, allowed = attended.weights, allowance(module, query, memory, offset)
    real = memory.keep if itself and memory.keep is not None and queries == keys else None
    statistics: Mapping[str, Tensor] = {
        name: statistic for name, statistic in attended.statistics.items() if name in STATISTICS
    }
    if weights is not None and ear.wanted.weights:
        statistics = measured(weights, allowed, real)
    rows = None
    if not ear.wanted.weights:
        rows = tuple(row for row in ear.wanted.rows or () if ear.first <= row < ear.first + queries)
        weights = chosen(weights, [row - ear.first for row in rows], ear.rows, 1)
    along = 2 if isinstance(module, Stateful) else 1
    return Call(
        batch,
        queries,
        keys,
        ear.source,
        None if weights is None else half(weights),
        {name: single(statistic) for name, statistic in statistics.items()},
        None if allowed is None else allowed.cpu().numpy(),
        None if memory.keep is None else memory.keep.cpu().numpy(),
        itself,
        adds_up(module, attended.weights, allowed),
        rows,
        half(torch.cat(ear.scores, dim=along)) if ear.scores else None,
        single(torch.cat(ear.values, dim=1))
        if ear.values and along == 1
        else single(ear.values[-1])
        if ear.values
        else None,
    )


def measured(weights: Tensor, allowed: Tensor | None, real: Tensor | None) -> dict[str, Tensor]:
    """All statistics of these weights in single precision; queries that are padding give nothing to any key."""
    weights = widen(weights)
    if real is not None:
        weights = weights.masked_fill(~real[:, None, :, None], 0.0)
        seen = real[:, None, :, None].expand(*weights.shape)
        allowed = seen if allowed is None else allowed & seen
    return measure(weights, allowed, STATISTICS)


def chosen(weights: Tensor | None, rows: list[int], parts: list[Tensor], along: int) -> Tensor | None:
    """The weights of the chosen rows: recomputed ones, or those of an attention that forms all of them anyway."""
    if parts:
        return torch.cat(parts, dim=along)
    return None if weights is None or not rows else weights[:, :, rows]


def allowance(module: Attention, query: Tensor, memory: Memory, offset: Any) -> Tensor | None:
    """Mask by scope and padding for these queries; None: everything."""
    (batch, queries), keys = query.shape[:2], memory.keys.shape[2]
    if offset is None:
        offset = 0 if isinstance(module, Stateful) else align_offset(queries, keys)
    scope = module.scope if memory.keep is None else module.scope & Padding(memory.keep)
    rows = len(memory.values)
    if rows != batch:  # beams that share a memory; whoever follows them knows
        scope, offset = module.scope, 0
    mask: Tensor | None = scope.allowed(batch, getattr(module, "heads", 1), queries, keys, offset, query.device)
    return mask


def adds_up(module: Attention, weights: Tensor | None, allowed: Tensor | None) -> bool:
    """True if weights are said to sum to one and, where they are present, do."""
    if not getattr(module.normalise, "sums_to_one", False):
        return False
    centre = getattr(module, "centre", None)
    if weights is None:
        return centre is None or not centre.gaussian or bool(getattr(module, "renormalise", False))
    sums, rounding = widen(weights).sum(-1), max(1e-3, torch.finfo(weights.dtype).eps / 2)
    blind = sums == 0 if allowed is None else ~allowed.any(-1).expand_as(sums) & (sums == 0)
    return bool((((sums - 1).abs() < rounding) | blind).all()) and bool((weights >= 0).all())


def half(data: Tensor) -> Array:
    """On the host, as float16, at most a two-thousandth off; as float32 where numbers go beyond what float16 has."""
    small = data.detach().to(torch.float16)
    if small.isinf().sum() != data.isinf().sum():
        return single(data)
    array: Array = small.cpu().numpy()
    return array


def single(data: Tensor) -> Array:
    """On the host, as float32."""
    array: Array = np.asarray(data.detach().float().cpu().numpy())
    return array
