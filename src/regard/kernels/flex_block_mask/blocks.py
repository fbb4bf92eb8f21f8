"""FlexAttention's BlockMask of a scope, built without holding queries x keys.

A tile is empty, and skipped; full, and read without a mask; or partial, and the kernel evaluates the scope in it. Dong et
al. 2024, https://arxiv.org/abs/2412.05496
"""

from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.scope import Scope
from regard.attention.types import Request

if TYPE_CHECKING:  # it imports the compiler, which is slow
    from torch.nn.attention.flex_attention import BlockMask

TILE = 128
"""Queries and keys of a tile."""
STRIP = 8
"""Rows of tiles that are evaluated together."""
CACHE_SIZE = 64
"""Size of the mask cache; the oldest is evicted first."""


class BlockMaskEntry(NamedTuple):
    """A block mask, and its fraction of non-empty tiles if known without synchronisation."""

    mask: "BlockMask"
    share: float | None


CACHE: dict[Hashable, BlockMaskEntry] = {}
"""Masks of scopes without tensors, by structure, lengths, offset and device."""
LATEST: list[tuple[Hashable, list[Tensor], list[int], BlockMaskEntry]] = []
"""The last mask built from tensors: the layers of a network use the same one in turn."""


def describe_structure(scope: Scope) -> Hashable:
    """Hashable structure of a scope, equal where the compiled kernel is: types, numbers, and tensors by dtype and rank.

    Raises TypeError where a scope is no dataclass, or has a field that cannot be compared.
    """
    if not is_dataclass(scope):
        raise TypeError(f"needs scopes that are dataclasses, got {type(scope).__name__}")
    structure = (type(scope), *(_part(getattr(scope, field.name)) for field in fields(scope)))
    hash(structure)
    return structure


def _part(value: Any) -> Any:
    if isinstance(value, Scope):
        return describe_structure(value)
    return (value.dtype, value.ndim) if isinstance(value, Tensor) else value


def iterate_tensors(scope: Scope) -> Iterator[Tensor]:
    """Iterate over the tensors of a scope."""
    for field in fields(scope):  # type: ignore[arg-type]
        value = getattr(scope, field.name)
        if isinstance(value, Scope):
            yield from iterate_tensors(value)
        elif isinstance(value, Tensor):
            yield value


def collect_mask_tensors(request: Request) -> list[Tensor]:
    """The tensors that the mask of a request depends on."""
    return [*iterate_tensors(request.scope), *([request.offset] if isinstance(request.offset, Tensor) else [])]


def build_cache_key(request: Request) -> Hashable:
    """Cache key of a request's mask, except for the contents of tensors."""
    batch, heads, queries, _ = request.query.shape
    offset = None if isinstance(request.offset, Tensor) else request.offset
    return describe_structure(request.scope), batch, heads, queries, request.keys.shape[2], offset, request.query.device


def find_block_mask(request: Request) -> BlockMaskEntry:
    """The block mask of a request, rebuilt only where its scope is another one or its tensors were written to."""
    batch, heads, queries, _ = request.query.shape
    request.scope.check(batch, heads, queries, request.keys.shape[2])
    key, tensors = build_cache_key(request), collect_mask_tensors(request)
    if tensors:
        return _of_tensors(request, key, tensors)
    if key not in CACHE:
        if len(CACHE) >= CACHE_SIZE:
            del CACHE[next(iter(CACHE))]
        mask = build_block_mask(request)
        nonempty = mask.kv_num_blocks if mask.full_kv_num_blocks is None else mask.kv_num_blocks + mask.full_kv_num_blocks
        CACHE[key] = BlockMaskEntry(mask, nonempty.sum().item() / (nonempty.numel() * mask.kv_indices.shape[-1]))
    return CACHE[key]


def _of_tensors(request: Request, key: Hashable, tensors: list[Tensor]) -> BlockMaskEntry:
    if any(tensor.is_inference() for tensor in tensors) or is_capturing():  # these have no version counter
        return BlockMaskEntry(build_block_mask(request), None)
    versions = [tensor._version for tensor in tensors]
    for known_key, known_tensors, known_versions, entry in LATEST:
        if (
            known_key == key
            and versions == known_versions
            and all(one is other for one, other in zip(known_tensors, tensors, strict=True))
        ):
            return entry
    LATEST[:] = [(key, tensors, versions, BlockMaskEntry(build_block_mask(request), None))]
    return LATEST[0][-1]


def is_capturing() -> bool:
    """True during CUDA graph capture."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def build_block_mask(request: Request) -> "BlockMask":
    """Build the BlockMask from a strip of queries at a time."""
    from torch.nn.attention.flex_attention import BlockMask

    queries, keys = request.query.shape[2], request.keys.shape[2]
    visible, device = build_mask_mod(request), request.query.device
    b = torch.arange(request.query.shape[0], device=device)[:, None, None, None]
    h = torch.arange(request.query.shape[1], device=device)[None, :, None, None]
    k = torch.arange(keys, device=device)[None, None, None]
    strips = []
    for first in range(0, queries, TILE * STRIP):
        q = torch.arange(first, min(first + TILE * STRIP, queries), device=device)[None, None, :, None]
        strips.append(_count_allowed(visible(b, h, q, k), q.shape[2], keys))
    counts = torch.cat(strips, dim=2)
    full = counts == TILE * TILE
    partial = (counts > 0) & ~full
    (partial_counts, partial_indices), (full_counts, full_indices) = (
        (kind.sum(-1, dtype=torch.int32), _sort_first(kind)) for kind in (partial, full)
    )
    return BlockMask.from_kv_blocks(
        partial_counts, partial_indices, full_counts, full_indices, TILE, visible, (queries, keys)
    )


def build_mask_mod(request: Request) -> Any:
    """The scope as FlexAttention's mask_mod: queries count from 0 and are shifted by the offset.

    An offset is a tensor even where it is one number, so that another one does not recompile.
    """
    scope, offset = request.scope, request.offset
    if isinstance(offset, Tensor):
        firsts = offset.to(request.query.device)
        return lambda b, h, q, k: scope(b, h, q + firsts[b], k)
    if not offset:
        return lambda b, h, q, k: scope(b, h, q, k)
    first = torch.full((), offset, device=request.query.device)
    return lambda b, h, q, k: scope(b, h, q + first, k)


def _count_allowed(allowed: Tensor, queries: int, keys: int) -> Tensor:
    """The number of allowed pairs of each tile; beyond the last query and key none is allowed."""
    allowed = allowed.expand(*allowed.shape[:2], queries, keys)
    padded = F.pad(allowed, (0, -keys % TILE, 0, -queries % TILE))
    rows, columns = (length // TILE for length in padded.shape[2:])
    return padded.reshape(*allowed.shape[:2], rows, TILE, columns, TILE).sum((3, 5))


def _sort_first(kind: Tensor) -> Tensor:
    """Indices of True before those of False, both in order."""
    return torch.argsort(kind.int(), dim=-1, descending=True, stable=True).int()
