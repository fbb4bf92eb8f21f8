"""Attention as an nn.Module: prepares a source once as a memory, then attends to it for any number of queries."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard import registry
from regard.attention.attend import build_request, run_request
from regard.attention.scope import Offset, Scope, is_relative
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score import is_positional, prepare
from regard.attention.score.location import Location
from regard.attention.statistics import check_names
from regard.attention.types import Attended, Encoded, Memory, Request, State
from regard.attention.validation import check_stages


def zero_padding(encoded: Encoded) -> Float[Tensor, "batch time dim"]:
    """The source with its padding set to zero."""
    if encoded.keep is None or encoded.clean:
        return encoded.data
    return encoded.data.masked_fill(~encoded.keep[..., None], 0.0)


class Attention(nn.Module):
    """Single-head attention with or without projections, and the interface of every mechanism.

        memory = attention.remember(encoded)          once per source: projects, prepares, zeroes the padding
        state = attention.start(memory)               () here; a mechanism with state carries it between steps
        attended = attention(query, memory, state)    any number of times

    `score`, `normalise` and `scope` are stages, their classes or their names. A score that learns is built for the given
    sizes. Without `size` the query and the source are not projected, as in Bahdanau and Luong; with it, query, keys and
    values are first projected to that size. `limit` is the longest source of a score with parameters for each position.
    """

    def __init__(
        self,
        query: int,
        key: int | None = None,
        value: int | None = None,
        *,
        size: int | None = None,
        score: Any = "scaled_dot",
        normalise: Any = "softmax",
        scope: Any = "everywhere",
        bias: bool = True,
        dropout: float = 0.0,
        limit: int | None = None,
        impl: str = "auto",
    ):
        super().__init__()
        key = query if key is None else key
        value = key if value is None else value
        self.query: nn.Module = nn.Identity() if size is None else nn.Linear(query, size, bias)
        self.key: nn.Module = nn.Identity() if size is None else nn.Linear(key, size, bias)
        self.value: nn.Module = nn.Identity() if size is None else nn.Linear(value, size, bias)
        self.output: nn.Module = nn.Identity()
        limits = {} if limit is None else {"limit": limit}
        self.choose(score, normalise, scope, query=size or query, key=size or key, value=size or value, **limits)
        self.size = size or value
        self.dropout, self.impl = dropout, impl

    def choose(self, score: Any, normalise: Any, scope: Any, **sizes: int) -> None:
        """Set the three stages, building those that are given by name or class."""
        self.score = registry.build(score, "score", **sizes)
        self.normalise = registry.build(normalise, "normalise", **sizes)
        self.scope = registry.build(scope, "scope", **sizes)
        check_stages(self.score, self.normalise, self.scope)

    def remember(
        self, encoded: Encoded | Float[Tensor, "batch time key"], values: Tensor | None = None, first: int = 0
    ) -> Memory:
        """Prepare the memory of a source, which is independent of the queries; `values` where they differ from the keys.

        `first` is the position of the first key: above 0 where the memory continues another.
        Padding is zeroed first, so that nothing in it, NaN included, reaches a result.
        """
        encoded = Encoded(encoded) if isinstance(encoded, Tensor) else encoded
        keep = encoded.keep
        if encoded.data.ndim != 3:
            raise ValueError(f"{type(self).__name__} needs a source of (batch, time, dim), got {tuple(encoded.data.shape)}")
        if keep is not None:
            Padding(keep).check(encoded.data.shape[0], 1, 1, encoded.data.shape[1])
        data = zero_padding(encoded)
        values = encoded.values if values is None else values
        if values is not None and (values.ndim != 3 or values.shape[:2] != data.shape[:2]):
            raise ValueError(
                f"{type(self).__name__} needs a value for each place of the source, (batch, time, dim) with "
                f"{tuple(data.shape[:2])} in front, got {tuple(values.shape)}"
            )
        if values is not None and keep is not None:
            values = values.masked_fill(~keep[..., None], 0.0)
        key, value = self.sides(data, values)
        prepared = prepare(self.score, self.split(key), first)
        return Memory(prepared, self.split(value), keep, encoded.grid, encoded.documents)

    def sides(self, data: Tensor, values: Tensor | None) -> tuple[Tensor, Tensor]:
        """Keys and values of a source: the source itself where no other `values` are given."""
        return self.key(data), self.value(data if values is None else values)

    @property
    def positional(self) -> bool:
        """True if the result depends on the position of a query."""
        return not isinstance(self.scope, Everywhere) or is_positional(self.score)

    @property
    def unpackable(self) -> str | None:
        """The reason against packed rows, or None where a document mask is enough."""
        if isinstance(self.score, Location):
            return "has a score for each place of a row, wherever an example begins"
        if not is_relative(self.scope):
            return "has a scope that goes by the places of a row, wherever an example begins"
        return None

    def start(self, memory: Memory) -> State:
        """The state before the first step: empty."""
        return ()

    def forward(
        self,
        query: Float[Tensor, "batch queries query"],
        memory: Memory,
        state: State = (),
        *,
        offset: Offset | None = None,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        documents: Int[Tensor, "batch queries"] | None = None,
    ) -> Attended:
        """Attention of the queries to a memory; `documents` numbers the examples of the queries where rows are packed."""
        self.check(query, memory, statistics, documents)
        request = self.build_request(
            self.split(self.query(query)),
            memory,
            offset=offset,
            weights=weights,
            statistics=statistics,
            documents=documents,
        )
        return self.project_output(run_request(request, self.impl), state)

    if TYPE_CHECKING:
        __call__ = forward  # nn.Module returns Any

    def build_request(
        self,
        query: Float[Tensor, "batch heads queries head"],
        memory: Memory,
        *,
        offset: Offset | None = None,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        documents: Int[Tensor, "batch queries"] | None = None,
    ) -> Request:
        """The request of projected queries to a memory, with this attention's stages and masks."""
        return build_request(
            query,
            memory,
            score=self.score,
            normalise=self.normalise,
            scope=self.within(memory, documents),
            dropout=self.dropout if self.training else 0.0,
            offset=0 if offset is None and documents is not None else offset,  # packed rows come whole
            weights=weights,
            statistics=statistics,
        )

    def project_output(self, attended: Attended, state: State = ()) -> Attended:
        """Merge the heads and project their context to the output."""
        context = self.output(self.merge(attended.context))  # and no _replace, which torch.compile of 2.11 cannot give back
        return Attended(context, attended.weights, attended.statistics, state, attended.sampled)

    def within(self, memory: Memory, documents: Int[Tensor, "batch queries"] | None) -> Scope:
        """The scope together with the padding mask and, in packed rows, the document mask."""
        scope = self.scope if memory.keep is None else self.scope & Padding(memory.keep)
        if memory.documents is None and documents is None:
            return scope
        if memory.documents is None or documents is None:
            kind, other = ("memory", "queries") if documents is None else ("queries", "memory")
            raise ValueError(
                f"{type(self).__name__} needs the documents of both sides where rows are packed, got those of the {kind} "
                f"and none of the {other}; Encoded(documents=...) has those of a source, attention(documents=...) of queries"
            )
        return scope & Document(memory.documents, documents)

    def check(self, query: Tensor, memory: Memory, statistics: tuple[str, ...], documents: Tensor | None = None) -> None:
        """Raise where query, memory or statistics do not fit this attention."""
        if query.ndim != 3:
            raise ValueError(
                f"{type(self).__name__} needs a query of (batch, queries, dim), got {tuple(query.shape)}; "
                "one query a row is query[:, None]"
            )
        if not isinstance(memory, Memory):
            raise TypeError(
                f"{type(self).__name__} reads a Memory, got {type(memory).__name__}; call remember(source) first"
            )
        if self.unpackable and not (memory.documents is None and documents is None):
            raise ValueError(f"{type(self).__name__} cannot read packed rows: it {self.unpackable}; give each example a row")
        check_names(statistics)

    def split(self, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch heads time head"]:
        """Add the axis of heads: there is one."""
        return data[:, None]

    def merge(self, context: Float[Tensor, "batch heads queries head"]) -> Float[Tensor, "batch queries size"]:
        """Remove the axis of heads."""
        return context.squeeze(1)  # not [:, 0], whose backward is zeros and a copy into them

    def extra_repr(self) -> str:
        stages = ((name, getattr(self, name)) for name in ("score", "normalise", "scope"))
        return ", ".join(f"{name}={stage}" for name, stage in stages if not isinstance(stage, nn.Module))
