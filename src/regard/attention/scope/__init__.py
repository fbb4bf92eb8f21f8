"""Scopes: which keys a query may see at all.

A scope is a predicate over positions with the signature of FlexAttention's `mask_mod`, so that one object serves the
reference, the fused kernels and `torch.nn.attention.flex_attention`. Scopes compose: `Causal() & Local(4) | Prefix(2)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard import registry

Offset = int | Int[Tensor, " batch"]
"""The position of the first query: one number, or one per batch row."""


class Scope(ABC):
    """allowed(b, h, q, k) is True where query q of head h in row b may see key k."""

    relative: ClassVar[bool] = False
    """Whether it goes by the distance of q and k alone, so that it holds wherever in a row an example begins."""

    @abstractmethod
    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor: ...

    def __and__(self, other: "Scope") -> "Scope":
        return And(self, _scope(other))

    def __or__(self, other: "Scope") -> "Scope":
        return Or(self, _scope(other))

    def __invert__(self) -> "Scope":
        return Not(self)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        """Raise where this scope was made for other sizes. Most fit all."""

    def allowed(
        self, batch: int, heads: int, queries: int, keys: int, offset: Offset, device: torch.device
    ) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
        """The predicate over all positions at once, no larger than it has to be; None where everything is allowed."""
        self.check(batch, heads, queries, keys)
        b = torch.arange(batch, device=device)[:, None, None, None]
        h = torch.arange(heads, device=device)[None, :, None, None]
        q = torch.arange(queries, device=device)[None, None, :, None]
        k = torch.arange(keys, device=device)[None, None, None, :]
        first = offset[:, None, None, None].to(device) if isinstance(offset, Tensor) else offset
        allowed = self.__call__(b, h, q + first, k)  # torch.compile of 2.11 hashes what is called, which it has not yet made
        return allowed.expand(*allowed.shape[:-1], keys)

    @classmethod
    def sample(cls, batch: int, keys: int) -> "Scope":
        """A scope of this kind that fits a batch of this size and hides something: for tests, drawings and docs."""
        return cls()


@dataclass(frozen=True)
class And(Scope):
    """Allowed by both."""

    left: Scope
    right: Scope

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.left.__call__(b, h, q, k) & self.right.__call__(b, h, q, k)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        self.left.check(batch, heads, queries, keys)
        self.right.check(batch, heads, queries, keys)


@dataclass(frozen=True)
class Or(Scope):
    """Allowed by either."""

    left: Scope
    right: Scope

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.left.__call__(b, h, q, k) | self.right.__call__(b, h, q, k)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        self.left.check(batch, heads, queries, keys)
        self.right.check(batch, heads, queries, keys)


@dataclass(frozen=True)
class Not(Scope):
    """Allowed where the other is not."""

    inner: Scope

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return ~self.inner.__call__(b, h, q, k)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        self.inner.check(batch, heads, queries, keys)


def parts(scope: Scope) -> Iterator[Scope]:
    """The scopes that are joined by &, all of which have to allow: kernels know some of them."""
    if type(scope) is And:
        yield from parts(scope.left)
        yield from parts(scope.right)
    else:
        yield scope


def relative(scope: Scope) -> bool:
    """Whether a scope, or every part of one, goes by the distance of query and key alone."""
    if isinstance(scope, And | Or):
        return relative(scope.left) and relative(scope.right)
    return relative(scope.inner) if isinstance(scope, Not) else scope.relative


def _scope(other: Any) -> Scope:
    """Raise where something else than a scope is to be part of one."""
    if isinstance(other, Tensor):
        raise TypeError(f"& and | need a Scope such as Causal(), got a {other.dtype} tensor; Padding(mask) makes it one")
    if not isinstance(other, Scope):
        raise TypeError(f"& and | need a Scope such as Causal(), got {other!r}")
    return other


def __getattr__(name: str) -> Any:
    return registry.attribute(__name__, name)
