"""Local attention: each query attends to a window of keys around a centre in the source."""

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from regard.attention import dispatch
from regard.attention.attend import align_offset
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.module import Attention
from regard.attention.scope import Offset, Scope
from regard.attention.scope.padding import Padding
from regard.attention.score import is_positional
from regard.attention.score.dot import Dot
from regard.attention.score.location import Location
from regard.attention.statistics import measure
from regard.attention.types import Attended, Encoded, Memory, Request, Sampled, State
from regard.attention.validation import check_alignment


@runtime_checkable
class Centre(Protocol):
    """Protocol of the centre p of each query's window.

    `positional` is True if it depends on the query's own position, `gaussian` if the weights fall off around it.
    """

    @property
    def positional(self) -> bool: ...

    @property
    def gaussian(self) -> bool: ...

    def __call__(
        self, query: Float[Tensor, "batch queries query"], lengths: Int[Tensor, " batch"], offset: Offset
    ) -> Float[Tensor, "batch queries"]: ...


class Window(NamedTuple):
    """Positions of the keys gathered for each query, their distance from the centre, and their mask."""

    keys: Int[Tensor, "batch queries width"]
    distance: Float[Tensor, "batch queries width"]
    near: Bool[Tensor, "batch queries width"]


class Windows(Attention):
    """Single-head local attention to the keys at most `width` positions away from a centre p.

        a(s) = normalise(score(q, k_s))                                for p - width ≤ s ≤ p + width
        a(s) = normalise(score(q, k_s)) exp(-(s - p)² / (2 σ²))        with σ = width / 2, where the centre is gaussian

    Gaussian weights need not sum to one, unless `renormalise` divides them by their sum. Without a centre this is global
    attention. The queries are folded into the batch, so that any score, normaliser and scope sees one query and the keys
    of its window; `Location`, which has a row of W for each key, has its rows gathered like keys. Nothing of size T x S
    exists unless weights or statistics are requested. On a GPU context and statistics come from a kernel that covers the
    stages, without T x S: `predicted_window`, or `flash` where a window is at the position of its query. Where weights are
    requested, they and the statistics are those of the gathered windows.
    """

    kernel: ClassVar[str] = "predicted_window"
    """The kernel that computes the context on a GPU."""

    def __init__(
        self,
        query: int,
        key: int | None = None,
        value: int | None = None,
        *,
        centre: Centre | None,
        width: int = 10,
        renormalise: bool = False,
        size: int | None = None,
        score: Any = "bilinear",
        normalise: Any = "softmax",
        scope: Any = "everywhere",
        bias: bool = True,
        dropout: float = 0.0,
        limit: int | None = None,
        impl: str = "auto",
    ):
        stages: dict[str, Any] = {"score": score, "normalise": normalise, "scope": scope, "limit": limit}
        super().__init__(query, key, value, size=size, bias=bias, dropout=dropout, impl=impl, **stages)
        if width < 1:
            raise ValueError(f"{type(self).__name__} needs a width of 1 or more keys on either side, got {width}")
        if centre is not None and is_positional(self.score):
            raise ValueError(
                f"{type(self).__name__} compares the keys of a window without their positions, and "
                f"{type(self.score).__name__} needs these; use a score that compares what is there, such as Bilinear, or "
                f"Attention(scope=Local({width})), whose window stands at the query's own place"
            )
        self.centre, self.width, self.renormalise = centre, width, renormalise

    def remember(
        self, encoded: Encoded | Float[Tensor, "batch time key"], values: Tensor | None = None, first: int = 0
    ) -> Memory:
        """The memory of any attention, except that the keys of Location are the rows of its W."""
        memory = super().remember(encoded, values, first)
        if self.centre is None or not isinstance(self.score, Location):
            return memory
        rows = self.score.W.weight[:, : memory.keys.shape[2]]
        return memory._replace(keys=rows.expand(memory.values.shape[0], *rows.shape))

    @property
    def positional(self) -> bool:
        """True if the result depends on the position of a query."""
        alone = torch.compiler.is_exporting()  # a graph with its number of beams open has each in a row of its own
        return super().positional or (self.centre is not None and (self.centre.positional or alone))

    @property
    def unpackable(self) -> str | None:
        """The reason against packed rows: a window would have to be placed within the example."""
        return super().unpackable if self.centre is None else "has a window at a place of the row"

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
        """Attention of each query to the keys of its window."""
        if self.centre is None:
            options: Any = {"offset": offset, "weights": weights, "statistics": statistics, "documents": documents}
            return super().forward(query, memory, state, **options)
        self.check(query, memory, statistics, documents)
        projected = self.split(self.query(query))
        check_alignment(projected, memory, offset)
        keys = memory.keys.shape[2]
        offset = align_offset(query.shape[1], keys) if offset is None else offset
        centre = self.centre(query, count_keys(memory), offset)
        requested = () if weights else statistics
        fused = self.fused(projected, memory, centre, offset, requested)
        if fused is not None and set(fused.statistics) >= set(requested) and not weights:
            return Attended(self.output(self.merge(fused.context)), statistics=fused.statistics, state=state)
        window = build_window(centre, self.width, keys)
        allowed = self.allowed(window, memory, offset)
        shares, sampled = self.normalise_windows(
            fold_queries(projected), gather_windows(memory.keys, window.keys), allowed, window
        )
        dropped = F.dropout(shares, self.dropout) if self.training and self.dropout else shares
        read = (
            unfold_queries(dropped @ gather_windows(memory.values, window.keys), window) if fused is None else fused.context
        )
        context = self.output(self.merge(read))
        if not weights and not statistics:
            return Attended(context, state=state, sampled=sampled)
        whole, visible = (
            scatter_windows(unfold_queries(tensor, window), window.keys, keys)
            for tensor in (shares, allowed.to(shares.dtype))
        )
        return Attended(context, whole if weights else None, measure(whole, visible > 0, statistics), state, sampled)

    def fused(
        self,
        query: Float[Tensor, "batch 1 queries query"],
        memory: Memory,
        centre: Float[Tensor, "batch queries"],
        offset: Offset,
        statistics: tuple[str, ...] = (),
    ) -> Attended | None:
        """Run the kernel on the windows; None where they are gathered instead, which "fused" refuses.

        Statistics that the kernel does not support are computed from the gathered windows. Where a window is as wide as the
        source there is nothing to gather, and plain matrix products are faster than the kernel.
        """
        covers_source = not torch.compiler.is_compiling() and memory.keys.shape[2] <= 2 * self.width + 1
        if self.impl == "reference" or self.centre is None or (covers_source and self.impl == "auto"):
            return None
        scope = self.scope if memory.keep is None else self.scope & Padding(memory.keep)
        normalise: Any = self.normalise
        if self.centre.gaussian:
            normalise = GaussianWindow(self.normalise, centre, self.width, self.renormalise)
        request = Request(
            query,
            memory.keys,
            memory.values,
            Dot() if isinstance(self.score, Location) else self.score,
            normalise,
            self.window(centre, offset) & scope,
            self.dropout if self.training else 0.0,
            offset,
            False,
            statistics,
        )
        kernel = dispatch.KERNELS[self.kernel]
        if statistics and dispatch.find_refusal(kernel, request) is not None:
            request = request._replace(statistics=())  # which the gathered windows have then
        reason = dispatch.find_refusal(kernel, request)
        if reason is None:
            if torch.compiler.is_compiling():
                return kernel.run(request)
            try:
                return kernel.run(request)
            except Exception as error:
                dispatch.record_overflow(kernel, request, error)
            reason = dispatch.find_refusal(kernel, request)
        if self.impl == "fused":
            reason = f"{self.kernel} {reason}"
            raise ValueError(f"no kernel covers this request: {reason}. impl='auto' gathers the windows instead")
        return None

    def window(self, centre: Float[Tensor, "batch queries"], offset: Offset) -> Scope:
        """The windows as a scope, for the kernel's request."""
        return WindowScope(centre, self.width, offset)

    def allowed(self, window: Window, memory: Memory, offset: Offset) -> Bool[Tensor, "rows 1 1 width"]:
        """Mask of window, scope and padding together: the scope's predicate at the gathered positions."""
        (batch, queries, _), device = window.keys.shape, window.keys.device
        scope = self.scope if memory.keep is None else self.scope & Padding(memory.keep)
        scope.check(batch, 1, queries, memory.keys.shape[2])
        b = torch.arange(batch, device=device)[:, None, None, None]
        h = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
        q = torch.arange(queries, device=device)[None, None, :, None]
        first = offset[:, None, None, None].to(device) if isinstance(offset, Tensor) else offset
        return fold_queries(scope(b, h, q + first, window.keys[:, None]) & window.near[:, None])

    def normalise_windows(
        self,
        query: Float[Tensor, "rows 1 1 query"],
        keys: Float[Tensor, "rows 1 width dim"],
        allowed: Bool[Tensor, "rows 1 1 width"],
        window: Window,
    ) -> tuple[Float[Tensor, "rows 1 1 width"], Sampled | None]:
        """The weights of the keys in each window, with the sample of a stochastic normaliser."""
        score = Dot() if isinstance(self.score, Location) else self.score
        normalised = self.normalise(score(query, keys), allowed)
        shares, sampled = normalised if isinstance(normalised, tuple) else (normalised, None)
        if sampled is not None:
            sampled = Sampled(*(unfold_queries(tensor[..., None], window)[..., 0] for tensor in sampled))
        if self.centre is not None and self.centre.gaussian:
            bell = torch.exp(-2 * (window.distance / self.width).square())  # 2 σ² = width² / 2
            shares = shares * fold_queries(bell[:, None]).to(shares.dtype)
        if self.renormalise:
            total = shares.sum(-1, keepdim=True)
            shares = shares / torch.where(total > 0, total, 1.0)
        return shares, sampled


def count_keys(memory: Memory) -> Int[Tensor, " batch"]:
    """The number of unpadded keys of each row."""
    batch, _, keys, _ = memory.values.shape
    if memory.keep is None:
        return torch.full((batch,), keys, device=memory.values.device)
    return memory.keep.sum(-1)


def build_window(centre: Float[Tensor, "batch queries"], width: int, keys: int) -> Window:
    """The positions from centre - width to centre + width, moved inwards at the ends: as many for each query."""
    count = 2 * width + 1
    if not torch.compiler.is_compiling():  # where a length is open, a short source fills the window up with its last key
        count = min(count, keys)
    first = torch.ceil(centre.detach() - width).long().clamp(0, align_offset(count, keys))
    places = first[..., None] + torch.arange(count, device=centre.device)
    distance = places - centre[..., None]
    return Window(places.clamp_max(keys - 1), distance, (distance.abs() <= width) & (places < keys))


def fold_queries(data: Shaped[Tensor, "batch 1 queries size"]) -> Shaped[Tensor, "rows 1 1 size"]:
    """Fold queries into the batch: each becomes a row of its own."""
    return data.flatten(0, 2)[:, None, None]


def unfold_queries(data: Shaped[Tensor, "rows 1 1 size"], window: Window) -> Shaped[Tensor, "batch 1 queries size"]:
    """Unfold the batch: each row becomes a query again."""
    return torch.unflatten(data.flatten(0, 2), 0, window.keys.shape[:2])[:, None]


def gather_windows(
    data: Float[Tensor, "batch 1 keys size"], places: Int[Tensor, "batch queries width"]
) -> Float[Tensor, "rows 1 width size"]:
    """Gather the elements at these positions, each query in a row of its own."""
    batch, _, keys, size = data.shape
    if not torch.compiler.is_compiling() and places.shape[2] == keys:  # the whole source, in its order
        return data.expand(batch, places.shape[1], keys, size).flatten(0, 1)[:, None]
    rows = places + keys * torch.arange(batch, device=places.device)[:, None, None]
    return F.embedding(rows.flatten(0, 1), data.flatten(0, 2))[:, None]


def scatter_windows(
    data: Float[Tensor, "batch 1 queries width"], places: Int[Tensor, "batch queries width"], keys: int
) -> Float[Tensor, "batch 1 queries keys"]:
    """Scatter the windows to their positions among all keys, with zeros elsewhere."""
    nothing = data.new_zeros(*data.shape[:3], keys)
    return nothing.scatter_add(-1, places[:, None].expand(data.shape), data)
