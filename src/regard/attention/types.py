"""The records that cross from one part of attention to the next, and the faces of its three stages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.per_head import spread
from regard.attention.scope import Offset, Scope
from regard.attention.score import compare

State = Any
"""What a mechanism or a decoder carries from step to step: a tree of tensors, batch first; () when it carries nothing."""


@runtime_checkable
class Score(Protocol):
    """How well each key fits each query: a frozen dataclass, or a module when it learns.

    A score that learns is built from its sizes, `Score(query=..., key=..., heads=1)`, with one set of parameters per
    head; heads=1 shares one set among all of them. `prepare` is the key's side, which does not see the query and so is
    computed once per source.

    A score that looks at positions says so by `positional = True` and is told them: `prepare(key, first)` gets the position
    of the first key, and the score itself the `offset` of the first query, `score(query, prepared, offset)`. Keys stand at
    0, 1, 2, ... Call any score through `regard.attention.score.prepare` and `compare`, which know the difference. A score
    that compares dimension by dimension says `one_size = True`.

    A score that has a say in what is read says `adds = True`: its `combine(weights, values, offset)` takes the place of
    weights @ values, and its constructor may ask for the size of a `value`. Kernels combine by themselves, so none may
    cover such a score.
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
    values: Float[Tensor, "batch time value"] | None = None
    """What is read, where that is not what is compared."""
    tokens: Int[Tensor, "batch time"] | None = None
    """What the source was made from, for a decoder that copies."""
    grid: tuple[int, int] | None = None
    """Rows and columns of a map, whose places `data` holds row after row, behind those for the whole if there are such."""
    clean: bool = False
    """Whether `data` is known to be zero outside `keep`."""
    documents: Int[Tensor, "batch time"] | None = None
    """The number of the example at each place, where several share a row and do not see each other."""


class Memory(NamedTuple):
    """A source as an attention reads it: keys already prepared by the score, so that no step prepares them again."""

    keys: Float[Tensor, "batch key_heads keys dim"]
    values: Float[Tensor, "batch value_heads keys value"]
    keep: Bool[Tensor, "batch keys"] | None = None
    grid: tuple[int, int] | None = None
    """Rows and columns of a map, whose places are the keys row after row, behind one for the whole if there is such."""
    documents: Int[Tensor, "batch keys"] | None = None
    """The number of the example at each key, where several share a row."""


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

    def scores(self) -> Float[Tensor, "batch heads queries keys"]:
        """The first stage: how well each key fits each query."""
        return compare(self.score, self.query, spread(self.keys, self.query.shape[1]), self.offset)
