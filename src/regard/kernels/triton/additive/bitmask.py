"""A scope that no kernel works out itself, as bits: 32 keys to a number, an eighth of a byte for each query and key.

A tile of 32 queries and 32 keys is empty, full or partial, and only of a partial one the bits are read. They are packed a
strip of queries at a time, so that queries x keys bytes never exist, and kept while the same scope is asked for.
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
"""Keys of a number, and queries and keys of a tile."""
STRIP = 1 << 21
"""Pairs of queries and keys that are looked at together."""
KEPT = 8
"""How many scopes are kept; the oldest goes first."""


class Packed(NamedTuple):
    """Key 32 w + i is allowed where bit i of number w is 1; of a tile 0 says that all is hidden, 1 nothing, 2 some."""

    bits: Int[Tensor, "#batch #heads #queries words"]
    kinds: Int[Tensor, "#batch #heads #tiles words"]

    def steps(self) -> list[int]:
        """How far apart rows of the batch, heads, and queries or tiles stand; 0 along an axis of one, which serves all."""
        return [0 if each.shape[axis] == 1 else each.stride(axis) for each in self for axis in range(3)]


class Kept(NamedTuple):
    """What was packed, and from which tensors, as often as they had been written to by then."""

    held: list[Tensor]
    written: list[int]
    packed: Packed


MADE: dict[Hashable, Kept] = {}
"""By structure of scope, lengths, offset and device."""


def packed(request: Request) -> Packed:
    """The bits of a request's scope, made anew only where it is another one or its tensors were written to.

    In a CUDA graph they always are: what its tensors hold may be another thing at each replay.
    """
    if torch.compiler.is_compiling() or blocks.capturing():
        return make(request)
    try:
        asked, held = blocks.key(request), blocks.held(request)
    except TypeError:  # a scope that cannot be compared with others
        return make(request)
    if any(each.is_inference() for each in held):  # nobody counts what is written to these
        return make(request)
    written, before = [each._version for each in held], MADE.get(asked)
    if before and before.written == written and all(one is other for one, other in zip(before.held, held, strict=True)):
        return before.packed
    with torch.inference_mode(False):  # where training may follow
        found = make(request)
    if asked not in MADE and len(MADE) >= KEPT:
        del MADE[next(iter(MADE))]
    MADE[asked] = Kept(held, written, found)
    return found


def make(request: Request) -> Packed:
    """Look at the scope a strip of queries at a time; a compiler fuses it all, and takes them at once."""
    batch, heads, queries, _ = request.query.shape
    keys = request.keys.shape[2]
    request.scope.check(batch, heads, queries, keys)
    some = max(1, STRIP // (batch * heads * keys * TILE)) * TILE
    tall = queries if torch.compiler.is_compiling() else min(queries, some)
    strips = []
    for first in range(0, queries, tall):
        strips.append(_words(_strip(request, range(first, min(first + tall, queries)))))
        if strips[0].shape[2] == 1:  # of every query the same
            break
    bits = strips[0] if len(strips) == 1 else torch.cat(strips, dim=2)
    return Packed(bits, _kinds(bits, keys))


def _strip(request: Request, rows: range) -> Bool[Tensor, "#batch #heads #rows keys"]:
    """What some of the queries may see."""
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


def _words(allowed: Bool[Tensor, "*rows keys"]) -> Int[Tensor, "*rows words"]:
    """32 keys to a number, the first to its lowest bit."""
    wide = F.pad(allowed, (0, -allowed.shape[-1] % TILE))
    each = torch.unflatten(wide, -1, (-1, TILE)).int() << torch.arange(TILE, device=allowed.device, dtype=torch.int32)
    return each.sum(-1, dtype=torch.int32)


def _kinds(bits: Int[Tensor, "batch heads queries words"], keys: int) -> Int[Tensor, "batch heads tiles words"]:
    """0 where a tile is empty, 1 where it is full, 2 where it is neither; beyond the last query and key anything goes."""
    whole = _words(torch.ones(keys, dtype=torch.bool, device=bits.device))
    below = (0, 0, 0, -bits.shape[2] % TILE)
    some, full = F.pad(bits != 0, below), F.pad(bits == whole, below, value=True)
    some, full = torch.unflatten(some, 2, (-1, TILE)).any(3), torch.unflatten(full, 2, (-1, TILE)).all(3)
    return some.to(torch.int8) * (2 - full.to(torch.int8))
