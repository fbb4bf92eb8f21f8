"""Which tiles of queries x keys a scope leaves: FlexAttention's BlockMask, made without holding queries x keys.

A tile is empty, and passed over; full, and read without asking; or partial, and the scope is asked again inside the
program. Dong et al. 2024, https://arxiv.org/abs/2412.05496
"""

from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.scope import Scope
from regard.attention.types import Request

if TYPE_CHECKING:  # it takes the compiler along, which is slow to import
    from torch.nn.attention.flex_attention import BlockMask

TILE = 128
"""Queries and keys of a tile."""
STRIP = 8
"""How many rows of tiles are looked at together."""
KEPT = 64
"""How many masks are kept; the oldest goes first."""


class Blocks(NamedTuple):
    """A mask, and the share of all tiles that it leaves, where that is known without waiting for the device."""

    mask: "BlockMask"
    share: float | None


MADE: dict[Hashable, Blocks] = {}
"""Masks of scopes that hold no tensors, by structure, lengths, offset and device."""
LATEST: list[tuple[Hashable, list[Tensor], list[int], Blocks]] = []
"""The last mask that was made from tensors: the layers of a network ask for the same one in turn."""


def structure(scope: Scope) -> Hashable:
    """What two scopes share that can run the same program: types and numbers, and tensors by their kind alone.

    Raises TypeError where a scope is no dataclass, or holds something else that cannot be compared.
    """
    if not is_dataclass(scope):
        raise TypeError(f"needs scopes that are dataclasses, got {type(scope).__name__}")
    found = (type(scope), *(_part(getattr(scope, each.name)) for each in fields(scope)))
    hash(found)
    return found


def _part(value: Any) -> Any:
    if isinstance(value, Scope):
        return structure(value)
    return (value.dtype, value.ndim) if isinstance(value, Tensor) else value


def tensors(scope: Scope) -> Iterator[Tensor]:
    """Everything on a device that a scope holds."""
    for each in fields(scope):  # type: ignore[arg-type]
        value = getattr(scope, each.name)
        if isinstance(value, Scope):
            yield from tensors(value)
        elif isinstance(value, Tensor):
            yield value


def held(request: Request) -> list[Tensor]:
    """The tensors that decide what may be seen."""
    return [*tensors(request.scope), *([request.offset] if isinstance(request.offset, Tensor) else [])]


def key(request: Request) -> Hashable:
    """What two requests share that have the same mask but for what is in tensors."""
    batch, heads, queries, _ = request.query.shape
    offset = None if isinstance(request.offset, Tensor) else request.offset
    return structure(request.scope), batch, heads, queries, request.keys.shape[2], offset, request.query.device


def blocks(request: Request) -> Blocks:
    """The tiles of a request, made anew only where its scope is another one or its tensors were written to."""
    batch, heads, queries, _ = request.query.shape
    request.scope.check(batch, heads, queries, request.keys.shape[2])
    asked, holds = key(request), held(request)
    if holds:
        return _of_tensors(request, asked, holds)
    if asked not in MADE:
        if len(MADE) >= KEPT:
            del MADE[next(iter(MADE))]
        mask = make(request)
        left = mask.kv_num_blocks if mask.full_kv_num_blocks is None else mask.kv_num_blocks + mask.full_kv_num_blocks
        MADE[asked] = Blocks(mask, left.sum().item() / (left.numel() * mask.kv_indices.shape[-1]))
    return MADE[asked]


def _of_tensors(request: Request, asked: Hashable, holds: list[Tensor]) -> Blocks:
    if any(each.is_inference() for each in holds) or capturing():  # nobody counts what is written to these
        return Blocks(make(request), None)
    versions = [each._version for each in holds]
    for before, their, written, found in LATEST:
        if before == asked and versions == written and all(one is other for one, other in zip(their, holds, strict=True)):
            return found
    LATEST[:] = [(asked, holds, versions, Blocks(make(request), None))]
    return LATEST[0][-1]


def capturing() -> bool:
    """Whether what runs now is recorded as a CUDA graph."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def make(request: Request) -> "BlockMask":
    """Look at the scope a strip of queries at a time."""
    from torch.nn.attention.flex_attention import BlockMask

    queries, keys = request.query.shape[2], request.keys.shape[2]
    visible, device = seen(request), request.query.device
    b = torch.arange(request.query.shape[0], device=device)[:, None, None, None]
    h = torch.arange(request.query.shape[1], device=device)[None, :, None, None]
    k = torch.arange(keys, device=device)[None, None, None]
    strips = []
    for first in range(0, queries, TILE * STRIP):
        q = torch.arange(first, min(first + TILE * STRIP, queries), device=device)[None, None, :, None]
        strips.append(_counted(visible(b, h, q, k), q.shape[2], keys))
    counts = torch.cat(strips, dim=2)
    full = counts == TILE * TILE
    partial = (counts > 0) & ~full
    (left, places), (whole, whole_places) = ((kind.sum(-1, dtype=torch.int32), _first(kind)) for kind in (partial, full))
    return BlockMask.from_kv_blocks(left, places, whole, whole_places, TILE, visible, (queries, keys))


def seen(request: Request) -> Any:
    """The scope as FlexAttention asks it: queries count from 0, and stand where the offset says.

    An offset is a tensor even where it is one number, so that another one needs no other program.
    """
    scope, offset = request.scope, request.offset
    if isinstance(offset, Tensor):
        firsts = offset.to(request.query.device)
        return lambda b, h, q, k: scope(b, h, q + firsts[b], k)
    if not offset:
        return lambda b, h, q, k: scope(b, h, q, k)
    first = torch.full((), offset, device=request.query.device)
    return lambda b, h, q, k: scope(b, h, q + first, k)


def _counted(allowed: Tensor, queries: int, keys: int) -> Tensor:
    """How many pairs of each tile are allowed; beyond the last query and key none is."""
    allowed = allowed.expand(*allowed.shape[:2], queries, keys)
    padded = F.pad(allowed, (0, -keys % TILE, 0, -queries % TILE))
    rows, columns = (length // TILE for length in padded.shape[2:])
    return padded.reshape(*allowed.shape[:2], rows, TILE, columns, TILE).sum((3, 5))


def _first(kind: Tensor) -> Tensor:
    """Places where it is true before those where it is not, each in order."""
    return torch.argsort(kind.int(), dim=-1, descending=True, stable=True).int()
