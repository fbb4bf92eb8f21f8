"""Scopes: attention masks as predicates over positions.

A scope has the signature of FlexAttention's `mask_mod`, so that one object serves the reference, the fused kernels and
`torch.nn.attention.flex_attention`. Scopes compose: `Causal() & Local(4) | Prefix(2)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard import registry

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard.attention.scope.blocks import Blocks
    from regard.attention.scope.causal import Causal
    from regard.attention.scope.dilated import Dilated
    from regard.attention.scope.document import Document
    from regard.attention.scope.everywhere import Everywhere
    from regard.attention.scope.exclude_self import ExcludeSelf
    from regard.attention.scope.landmarks import Landmarks
    from regard.attention.scope.local import Local
    from regard.attention.scope.log_sparse import LogSparse
    from regard.attention.scope.neighbourhood import Neighbourhood
    from regard.attention.scope.padding import Padding
    from regard.attention.scope.prefix import Prefix

__all__ = [
    "Blocks",
    "Causal",
    "Dilated",
    "Document",
    "Everywhere",
    "ExcludeSelf",
    "Landmarks",
    "Local",
    "LogSparse",
    "Neighbourhood",
    "Padding",
    "Prefix",
    "Scope",
]


Offset = int | Int[Tensor, " batch"]
"""The position of the first query: one number, or one per batch row."""


class Scope(ABC):
    """Mask predicate: scope(b, h, q, k) is True where query q of head h in row b may see key k."""

    relative: ClassVar[bool] = False
    """True if it depends on the distance of q and k alone, so that it holds wherever in a row an example begins."""

    @abstractmethod
    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor: ...

    def __and__(self, other: "Scope") -> "Scope":
        return And(self, _require_scope(other))

    def __or__(self, other: "Scope") -> "Scope":
        return Or(self, _require_scope(other))

    def __invert__(self) -> "Scope":
        return Not(self)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        """Raise where this scope was made for other sizes; most fit all."""

    def allowed(
        self, batch: int, heads: int, queries: int, keys: int, offset: Offset, device: torch.device
    ) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
        """The mask over all positions, broadcastable and no larger than necessary; None where everything is allowed."""
        self.check(batch, heads, queries, keys)
        b = torch.arange(batch, device=device)[:, None, None, None]
        h = torch.arange(heads, device=device)[None, :, None, None]
        q = torch.arange(queries, device=device)[None, None, :, None]
        k = torch.arange(keys, device=device)[None, None, None, :]
        first = offset[:, None, None, None].to(device) if isinstance(offset, Tensor) else offset
        allowed = self.__call__(b, h, q + first, k)  # torch.compile of 2.11 hashes the callee, which does not exist yet
        return allowed.expand(*allowed.shape[:-1], keys)

    @classmethod
    def sample(cls, batch: int, keys: int) -> "Scope":
        """A scope of this kind that fits a batch of this size and masks some keys: for tests, figures and docs."""
        return cls()


@dataclass(frozen=True)
class And(Scope):
    """Intersection of two scopes."""

    left: Scope
    right: Scope

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.left.__call__(b, h, q, k) & self.right.__call__(b, h, q, k)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        self.left.check(batch, heads, queries, keys)
        self.right.check(batch, heads, queries, keys)


@dataclass(frozen=True)
class Or(Scope):
    """Union of two scopes."""

    left: Scope
    right: Scope

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.left.__call__(b, h, q, k) | self.right.__call__(b, h, q, k)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        self.left.check(batch, heads, queries, keys)
        self.right.check(batch, heads, queries, keys)


@dataclass(frozen=True)
class Not(Scope):
    """Complement of a scope."""

    inner: Scope

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return ~self.inner.__call__(b, h, q, k)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        self.inner.check(batch, heads, queries, keys)


def iterate_parts(scope: Scope) -> Iterator[Scope]:
    """Iterate over the scopes joined by &, some of which a kernel may know."""
    if type(scope) is And:
        yield from iterate_parts(scope.left)
        yield from iterate_parts(scope.right)
    else:
        yield scope


def is_relative(scope: Scope) -> bool:
    """True if a scope, or every part of one, depends on the distance of query and key alone."""
    if isinstance(scope, And | Or):
        return is_relative(scope.left) and is_relative(scope.right)
    return is_relative(scope.inner) if isinstance(scope, Not) else scope.relative


def _require_scope(other: Any) -> Scope:
    """The operand itself; raises where it is no scope."""
    if isinstance(other, Tensor):
        raise TypeError(f"& and | need a Scope such as Causal(), got a {other.dtype} tensor; Padding(mask) makes it one")
    if not isinstance(other, Scope):
        raise TypeError(f"& and | need a Scope such as Causal(), got {other!r}")
    return other


if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        return registry.find_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
