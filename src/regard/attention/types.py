"""Records that the parts of attention exchange, and the protocols of its stages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.mask_cache import find_mask
from regard.attention.per_head import repeat_heads
from regard.attention.scope import Offset, Scope
from regard.attention.score import is_positional

State = Any
"""State of a mechanism or a decoder between steps: a tree of tensors, batch first; () when there is none."""


@runtime_checkable
class Score(Protocol):
    """Protocol of a score: a frozen dataclass, or a module when it learns.

    A score that learns is built from its sizes, `Score(query=..., key=..., heads=1)`, with one set of parameters per
    head; heads=1 shares one set among all of them. `prepare` is the key's side, independent of the query and so computed
    once per source.

    A positional score sets `positional = True` and takes positions: `prepare(key, first)` gets the position of the first
    key, and the score itself the `offset` of the first query, `score(query, prepared, offset)`. Keys are at 0, 1, 2, ...
    Call any score through `regard.attention.score.prepare` and `compare`, which handle both kinds. A score that needs query
    and key of one size sets `one_size = True`.

    A score that contributes to the context sets `adds = True`: its `combine(weights, values, offset)` takes the place of
    weights @ values, and its constructor may take the size of a `value`. Kernels combine by themselves, so none may cover
    such a score.
    """

    def prepare(self, key: Float[Tensor, "batch key_heads keys key"]) -> Float[Tensor, "batch prepared_heads keys dim"]: ...

    def __call__(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch heads keys dim"]
    ) -> Float[Tensor, "batch scored_heads queries keys"]: ...


class Sampled(NamedTuple):
    """Sample of a stochastic normaliser, for the REINFORCE loss."""

    log_probability: Float[Tensor, "batch heads queries"]
    entropy: Float[Tensor, "batch heads queries"]


@runtime_checkable
class Normaliser(Protocol):
    """Protocol of a normaliser, which turns scores into weights; `allowed=None` masks nothing.

    `sums_to_one` is True if the weights of a query with an allowed key always sum to one.

    No score is refused, as by torch.softmax, so that a batch that went wrong reaches the check for non-finite losses: NaN
    among the scores of a query's allowed keys is NaN among its weights, and the scores of other keys and queries have no
    part in them. A query without an allowed key has zero weights. Minus infinity is a score, not a mask: where no allowed
    key has more, the weights that sum to one are NaN. Kernels that form no weights cannot tell such a query from one without
    an allowed key, and give a zero context.
    """

    @property
    def sums_to_one(self) -> bool: ...

    def __call__(
        self,
        scores: Float[Tensor, "batch heads queries keys"],
        allowed: Bool[Tensor, "#batch #heads #queries keys"] | None,
    ) -> Float[Tensor, "batch heads queries keys"] | tuple[Float[Tensor, "batch heads queries keys"], Sampled]: ...


class Encoded(NamedTuple):
    """Output of an encoder; the padding mask `keep` is True at the kept positions, None keeps all."""

    data: Float[Tensor, "batch time dim"]
    keep: Bool[Tensor, "batch time"] | None = None
    final: State = ()
    values: Float[Tensor, "batch time value"] | None = None
    """The values, where they differ from the keys."""
    tokens: Int[Tensor, "batch time"] | None = None
    """The source tokens, for a decoder that copies."""
    grid: tuple[int, int] | None = None
    """Rows and columns of a feature map, whose positions are in `data` row by row, after any global tokens."""
    clean: bool = False
    """True if `data` is known to be zero outside `keep`."""
    documents: Int[Tensor, "batch time"] | None = None
    """Document number of each position, where several examples are packed into a row."""
    copies: Int[Tensor, "batch time"] | None = None
    """Target token of each position in the extended vocabulary, for a decoder that copies words outside of its own."""


class Memory(NamedTuple):
    """Prepared source of an attention: the score's keys, and values; in decoding, the KV cache."""

    keys: Float[Tensor, "batch key_heads keys dim"]
    values: Float[Tensor, "batch value_heads keys value"]
    keep: Bool[Tensor, "batch keys"] | None = None
    grid: tuple[int, int] | None = None
    """Rows and columns of a feature map, whose positions are the keys row by row, after a global token if there is one."""
    documents: Int[Tensor, "batch keys"] | None = None
    """Document number of each key, where several examples are packed into a row."""


class Attended(NamedTuple):
    """Result of an attention; weights are included on request, and are those before dropout."""

    context: Float[Tensor, "..."]
    weights: Float[Tensor, "batch heads queries keys"] | None = None
    statistics: Mapping[str, Tensor] = MappingProxyType({})
    state: State = ()
    sampled: Sampled | None = None


class Request(NamedTuple):
    """Arguments of `attend` with prepared keys, by which kernels decide whether they cover it."""

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
        """The device type of the query."""
        return self.query.device.type

    @property
    def allowed(self) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
        """The scope as a mask, or None where nothing is masked."""
        batch, heads, queries, _ = self.query.shape
        return find_mask(self.scope, batch, heads, queries, self.keys.shape[2], self.offset, self.query.device)

    @property
    def score_arguments(self) -> tuple[Any, ...]:
        """Arguments of the score: queries, keys of every head and, where it depends on positions, the offset."""
        keys = repeat_heads(self.keys, self.query.shape[1])
        return (self.query, keys, self.offset) if is_positional(self.score) else (self.query, keys)

    def scores(self) -> Float[Tensor, "batch heads queries keys"]:
        """The scores, the first stage."""
        scores: Tensor = self.score(*self.score_arguments)
        return scores
