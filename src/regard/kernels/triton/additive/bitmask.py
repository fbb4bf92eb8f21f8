"""Bitmask of a scope that no kernel computes itself: 32 keys per word, one bit for each query and key.

A tile of 32 queries and 32 keys is empty, full or partial, and only of a partial one the bits are read. They are packed a
strip of queries at a time, so that queries x keys bytes never exist, and cached while the same scope is used.
"""

from collections.abc import Hashable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.scope import Scope
from regard.attention.types import Request
from regard.kernels.flex_block_mask import blocks

TILE = 32
"""Keys of a word, and queries and keys of a tile."""
STRIP = 1 << 21
"""Pairs of queries and keys that are packed together."""
CACHE_SIZE = 8
"""Size of the cache; the oldest is evicted first."""


class Bitmask(NamedTuple):
    """Bitmask and tile kinds: bit i of word w is 1 where key 32 w + i is allowed; kinds are 0 empty, 1 full, 2 partial."""

    bits: Int[Tensor, "#batch #heads #queries words"]
    kinds: Int[Tensor, "#batch #heads #tiles words"]

    def steps(self) -> list[int]:
        """Strides of batch, heads, and queries or tiles; 0 along a broadcast axis."""
        return [0 if tensor.shape[axis] == 1 else tensor.stride(axis) for tensor in self for axis in range(3)]


class CacheEntry(NamedTuple):
    """Cache entry: the bitmask, its tensors, and their version counters."""

    tensors: list[Tensor]
    versions: list[int]
    packed: Bitmask


CACHE: dict[Hashable, CacheEntry] = {}
"""Cache by structure of the scope, lengths, offset and device."""


def find_bitmask(request: Request) -> Bitmask:
    """The bitmask of a request's scope, rebuilt only where it is another one or its tensors were written to.

    In CUDA graph capture it is always rebuilt: its tensors may change between replays.
    """
    if torch.compiler.is_compiling() or blocks.is_capturing():
        return build_bitmask(request)
    try:
        cache_key, tensors = blocks.build_cache_key(request), blocks.collect_mask_tensors(request)
    except TypeError:  # a scope that cannot be hashed
        return build_bitmask(request)
    if any(tensor.is_inference() for tensor in tensors):  # these have no version counter
        return build_bitmask(request)
    versions, entry = [tensor._version for tensor in tensors], CACHE.get(cache_key)
    if entry and entry.versions == versions and all(one is other for one, other in zip(entry.tensors, tensors, strict=True)):
        return entry.packed
    with torch.inference_mode(False):  # training may follow
        bitmask = build_bitmask(request)
    if cache_key not in CACHE and len(CACHE) >= CACHE_SIZE:
        del CACHE[next(iter(CACHE))]
    CACHE[cache_key] = CacheEntry(tensors, versions, bitmask)
    return bitmask


def build_bitmask(request: Request) -> Bitmask:
    """Pack the scope a strip of queries at a time; all at once under torch.compile, which fuses it."""
    batch, heads, queries, _ = request.query.shape
    keys = request.keys.shape[2]
    request.scope.check(batch, heads, queries, keys)
    rows_per_strip = max(1, STRIP // (batch * heads * keys * TILE)) * TILE
    strip_rows = queries if torch.compiler.is_compiling() else min(queries, rows_per_strip)
    strips = []
    for first in range(0, queries, strip_rows):
        strips.append(_pack_words(_compute_mask_strip(request, range(first, min(first + strip_rows, queries)))))
        if strips[0].shape[2] == 1:  # equal for all queries
            break
    bits = strips[0] if len(strips) == 1 else torch.cat(strips, dim=2)
    return Bitmask(bits, _classify_tiles(bits, keys))


def _compute_mask_strip(request: Request, rows: range) -> Bool[Tensor, "#batch #heads #rows keys"]:
    """The mask of some of the queries."""
    scope: Scope = request.scope
    (batch, heads, _, _), keys, device = request.query.shape, request.keys.shape[2], request.query.device
    b = torch.arange(batch, device=device)[:, None, None, None]
    h = torch.arange(heads, device=device)[None, :, None, None]
    q = torch.arange(rows.start, rows.stop, device=device)[None, None, :, None]
    k = torch.arange(keys, device=device)[None, None, None, :]
    offset = request.offset
    first = offset.to(device)[:, None, None, None] if isinstance(offset, Tensor) else offset
    allowed = scope(b, h, q + first, k)
    return allowed.expand(*allowed.shape[:-1], keys)


def _pack_words(allowed: Bool[Tensor, "*rows keys"]) -> Int[Tensor, "*rows words"]:
    """Pack 32 keys into a word, the first in its lowest bit."""
    wide = F.pad(allowed, (0, -allowed.shape[-1] % TILE))
    bits = torch.unflatten(wide, -1, (-1, TILE)).int() << torch.arange(TILE, device=allowed.device, dtype=torch.int32)
    return bits.sum(-1, dtype=torch.int32)


def _classify_tiles(bits: Int[Tensor, "batch heads queries words"], keys: int) -> Int[Tensor, "batch heads tiles words"]:
    """Kinds of tiles: 0 empty, 1 full, 2 partial; positions beyond the last query and key do not count."""
    whole = _pack_words(torch.ones(keys, dtype=torch.bool, device=bits.device))
    below = (0, 0, 0, -bits.shape[2] % TILE)
    nonzero, full = F.pad(bits != 0, below), F.pad(bits == whole, below, value=True)
    nonzero, full = torch.unflatten(nonzero, 2, (-1, TILE)).any(3), torch.unflatten(full, 2, (-1, TILE)).all(3)
    return nonzero.to(torch.int8) * (2 - full.to(torch.int8))
