"""The records that cross from one part of attention to the next, and the faces of its three stages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.scope import Offset, Scope

State = Any
"""What a mechanism or a decoder carries from step to step: a tree of tensors, batch first; () when it carries nothing."""


@runtime_checkable
class Score(Protocol):
    """How well each key fits each query: a frozen dataclass, or a module when it learns.

    A score that learns is built from its sizes, `Score(query=..., key=..., heads=1)`, with one set of parameters per
    head; heads=1 shares one set among all of them. `prepare` is the key's side, which does not see the query and so is
    computed once per source.
    """

    def prepare(self, key: Float[Tensor, "batch key_heads keys key"]) -> Float[Tensor, "batch prepared_heads keys dim"]: ...

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch heads keys dim"]
    ) -> Float[Tensor, "batch scored_heads queries keys"]: ...


class Sampled(NamedTuple):
    """What a stochastic normaliser drew, for the loss that trains it."""

    log_probability: Float[Tensor, "batch heads queries"]
    entropy: Float[Tensor, "batch heads queries"]


@runtime_checkable
class Normaliser(Protocol):
    """Turns scores into shares of attention; `allowed=None` means that every key may be seen.

    `sums_to_one` says whether the shares of a query that sees anything always add up to one.
    """

    @property
    def sums_to_one(self) -> bool: ...

    def __call__(
        self,
        scores: Float[Tensor, "batch heads queries keys"],
        allowed: Bool[Tensor, "#batch #heads #queries keys"] | None,
    ) -> Float[Tensor, "batch heads queries keys"] | tuple[Float[Tensor, "batch heads queries keys"], Sampled]: ...


class Encoded(NamedTuple):
    """A source as an encoder leaves it. `keep` is True where there is something; None: everywhere."""

    data: Float[Tensor, "batch time dim"]
    keep: Bool[Tensor, "batch time"] | None = None
    final: State = ()


class Memory(NamedTuple):
    """A source as an attention reads it: keys already prepared by the score, so that no step prepares them again."""

    keys: Float[Tensor, "batch key_heads keys dim"]
    values: Float[Tensor, "batch value_heads keys value"]
    keep: Bool[Tensor, "batch keys"] | None = None


class Attended(NamedTuple):
    """What an attention gives back. Weights come only when asked for, and are those before dropout."""

    context: Float[Tensor, "..."]
    weights: Float[Tensor, "batch heads queries keys"] | None = None
    statistics: Mapping[str, Tensor] = MappingProxyType({})
    state: State = ()
    sampled: Sampled | None = None


class Request(NamedTuple):
    """Everything that `attend` was asked for, with the keys prepared: what a kernel says whether it covers."""

    query: Float[Tensor, "batch heads queries query"]
    keys: Float[Tensor, "batch key_heads keys dim"]
    values: Float[Tensor, "batch value_heads keys value"]
    score: Score
    normalise: Normaliser
    scope: Scope
    dropout: float
    offset: Offset
    weights: bool
    statistics: tuple[str, ...]

    @property
    def device(self) -> str:
        """The kind of device that the query lives on."""
        return self.query.device.type

    @property
    def allowed(self) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
        """The scope as a mask, or None where everything may be seen."""
        batch, heads, queries, _ = self.query.shape
        return self.scope.allowed(batch, heads, queries, self.keys.shape[2], self.offset, self.query.device)
