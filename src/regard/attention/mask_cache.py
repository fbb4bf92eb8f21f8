"""Masks of scopes: a scope without tensors gives the same mask for the same sizes, which is cached, and padding is a view.

Forming a mask from positions takes the host several calls. The cache has a few masks of a few MiB at most. No mask is cached
that torch.compile or a CUDA graph forms, whose memory is theirs.
"""

from collections.abc import Hashable
from dataclasses import fields, is_dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.attention.scope import And, Offset, Scope, iterate_parts
from regard.attention.scope.padding import Padding

MASKS: dict[Hashable, Tensor | None] = {}
CACHE_SIZE, LARGEST = 16, 1 << 22
"""Masks in the cache, the oldest of which goes first; and the elements of the largest."""


def find_mask(
    scope: Scope, batch: int, heads: int, queries: int, keys: int, offset: Offset, device: torch.device
) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
    """The mask of a scope over all positions, which nobody may write to; None where everything is allowed."""
    if torch.compiler.is_compiling() or not isinstance(offset, int):
        return scope.allowed(batch, heads, queries, keys, offset, device)
    if scope.__class__ is Padding:
        scope.check(batch, heads, queries, keys)
        return scope.keep.to(device)[:, None, None]
    if scope.__class__ is And and _has_padding(scope):
        left, right = (find_mask(part, batch, heads, queries, keys, offset, device) for part in (scope.left, scope.right))
        return right if left is None else left if right is None else left & right
    return _find_cached(scope, batch, heads, queries, keys, offset, device)


def _find_cached(
    scope: Scope, batch: int, heads: int, queries: int, keys: int, offset: int, device: torch.device
) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
    kind = scope, batch, heads, queries, keys, offset, device
    try:
        if kind in MASKS:
            return MASKS[kind]
    except TypeError:  # a scope that has no hash
        return scope.allowed(batch, heads, queries, keys, offset, device)
    capturing = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]
    if capturing or queries * keys > LARGEST or not _is_constant(scope):
        return scope.allowed(batch, heads, queries, keys, offset, device)
    with torch.inference_mode(False):  # whose tensors no backward may save
        mask = scope.allowed(batch, heads, queries, keys, offset, device)
    if mask is None or mask.untyped_storage().nbytes() <= LARGEST:
        while len(MASKS) >= CACHE_SIZE:
            del MASKS[next(iter(MASKS))]
        MASKS[kind] = mask
    return mask


def _has_padding(scope: Scope) -> bool:
    return any(part.__class__ is Padding for part in iterate_parts(scope))


def _is_constant(scope: Scope) -> bool:
    """True for a scope of the package whose fields are numbers, or such scopes."""
    if not is_dataclass(scope) or not type(scope).__module__.startswith("regard."):
        return False
    values = (getattr(scope, field.name) for field in fields(scope))
    return all(_is_constant(value) if isinstance(value, Scope) else isinstance(value, int | float) for value in values)
