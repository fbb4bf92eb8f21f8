"""Listening to one attention while it answers: which kernel ran, where it looked, and nothing changed in what it gives.

An attention is asked for its weights, and whoever called it gets back what it asked for itself. A fused kernel forms no
weights, and asking for them would let the reference run in its place, with other roundings. So `Listening` stands in for
the kernel: the request runs as it would have, and the weights are formed beside it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import dispatch
from regard.attention.attend import run_reference
from regard.attention.module import Attention
from regard.attention.per_head import repeat_heads
from regard.attention.stateful import Stateful
from regard.attention.statistics import BLOCK, BY_KEY, measure
from regard.attention.types import Attended, Request
from regard.kernels import weights as fused_rows
from regard.viewer.source import FUSED, INSTEAD, ITSELF, MEASURED, REFERENCE, ROWS, code, join_codes

STATISTICS = ("entropy", "max", "mean_position", "spread", "received", "uniform")


@dataclass(frozen=True)
class Wanted:
    """Options of recording: all weights, or statistics with the weights of some `rows`; scores before they are normalised.

    Of models of other libraries also: `statistics` beside the usual ones, some `heads` or `layers`, and gradients.
    """

    weights: bool = True
    rows: tuple[int, ...] | None = None
    scores: bool = False
    statistics: tuple[str, ...] = ()
    heads: tuple[int, ...] | None = None
    layers: tuple[int | str, ...] | None = None
    gradients: bool = False


@dataclass
class Listening:
    """A kernel that lets another one run, and notes what it did.

    `weights` and `statistics` are what the caller asked the attention for; `first` is how many queries came before, and
    `keep` which of those that come now are there at all, where that is known.
    """

    impl: Any
    wanted: Wanted
    weights: bool
    statistics: tuple[str, ...]
    steps: bool = False
    """An attention with a state needs its own weights, so that its requests are what they would have been."""
    picks: bool = True
    """True if rows can be recomputed from its requests; an attention that steps or samples forms its weights for them."""
    first: int = 0
    keep: Tensor | None = None
    seconds: float = 0.0
    sources: list[str] = field(default_factory=list)
    rows: list[Tensor] = field(default_factory=list)
    scores: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    def covers(self, request: Request) -> str | None:
        """Everything."""
        return None

    def run(self, request: Request) -> Attended:
        """Answer as without a listener, with weights or statistics beside it."""
        plain = request if self.steps else request._replace(weights=self.weights, statistics=self.statistics)
        kernel = dispatch.select_kernel(plain, self.impl)
        self.ran.append("reference" if kernel is None else name_of(kernel))
        with self.timed(), torch.no_grad():
            self.values.append(repeat_heads(request.values, request.query.shape[1]).norm(dim=-1))
            if self.wanted.scores:
                self.scores.append(masked(request))
        return self.with_weights(request, plain, kernel) if self.wanted.weights else self.measured(request, kernel)

    def with_weights(self, request: Request, plain: Request, kernel: dispatch.Kernel | None) -> Attended:
        """The answer and all weights, by the kernel itself where it forms them."""
        if kernel is None:
            self.sources.append(REFERENCE)
            return run_reference(request)
        if kernel.covers(request) is None:
            self.sources.append(code(FUSED, name_of(kernel)))
            return kernel.run(request)
        self.sources.append(code(INSTEAD, name_of(kernel)))
        attended = kernel.run(plain)
        with self.timed():
            return attended._replace(weights=formed(request))

    def measured(self, request: Request, kernel: dispatch.Kernel | None) -> Attended:
        """The answer with statistics, which every kernel can give, and the weights of the chosen rows."""
        self.sources.append(MEASURED if kernel is None else code(MEASURED, name_of(kernel)))
        with self.timed():
            self.recompute(request)
        padded = self.keep is not None and not bool(self.keep.all())
        attended = (
            run_reference(request._replace(weights=request.weights or padded)) if kernel is None else kernel.run(request)
        )
        if self.keep is None or not padded:
            return attended
        with self.timed():
            received = by_key(request, self.keep, attended.weights)
            kept = attended.weights if request.weights else None
            return attended._replace(weights=kept, statistics={**attended.statistics, **received})

    def recompute(self, request: Request) -> None:
        """The weights of the chosen rows that are among these queries, by a kernel or one query at a time."""
        if self.wanted.rows is None or not self.picks:
            return
        queries = request.query.shape[2]
        local = [row - self.first for row in self.wanted.rows if 0 <= row - self.first < queries]
        if fused_rows.covers_selected(request) is None:
            self.sources.append(code(ROWS, "float32"))
            self.rows += [fused_rows.select_weights(request, local)] if local else []
            return
        self.sources.append(code(ROWS, precision(request)))
        parts = [request._replace(query=request.query[:, :, row, None], offset=request.offset + row) for row in local]
        self.rows += [torch.cat([formed(part) for part in parts], dim=2)] if parts else []

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Around what would not happen without a listener."""
        begun = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - begun

    @property
    def source(self) -> str:
        """Origin of the weights, in codes; an attention that asked no kernel has one of its own."""
        return join_codes(self.sources) or ITSELF


@torch.no_grad()
def formed(request: Request) -> Tensor:
    """The first two stages of a request: its weights, in float32 at least where its score learns nothing."""
    request = widened(request)
    weights = request.normalise(request.scores(), request.allowed)
    return weights[0] if isinstance(weights, tuple) else weights


@torch.no_grad()
def by_key(request: Request, keep: Tensor, known: Tensor | None = None) -> dict[str, Tensor]:
    """Attention that each key receives, and would evenly receive, from real queries: those of padding mean nothing.

    Weights that are `known` are not formed again: where they are drawn at random, others would be drawn.
    """
    sums: dict[str, Tensor] = {}
    rows = max(1, BLOCK // max(1, request.query.shape[0] * request.query.shape[1] * request.keys.shape[2]))
    for first in range(0, request.query.shape[2], rows):
        part = request._replace(query=request.query[:, :, first : first + rows], offset=request.offset + first)
        real = keep[:, None, first : first + rows, None]
        weights = (formed(part) if known is None else known[:, :, first : first + rows]).masked_fill(~real, 0.0)
        allowed = real.expand(*weights.shape) if part.allowed is None else part.allowed & real
        for name, statistic in measure(weights, allowed, BY_KEY).items():
            sums[name] = sums.get(name, 0) + statistic
    return sums


def masked(request: Request) -> Tensor:
    """The scores of a request, minus infinity where nothing may be seen."""
    request = widened(request)
    allowed, scores = request.allowed, request.scores()
    return scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))


def widened(request: Request) -> Request:
    """The request in single precision at least; a score with parameters stays in theirs."""
    if isinstance(request.score, nn.Module):
        return request
    wide = torch.promote_types(request.query.dtype, torch.float32)
    return request._replace(query=request.query.to(wide), keys=request.keys.to(wide))


def precision(request: Request) -> str:
    """The numbers that rows are recomputed in, by name."""
    return str(widened(request).query.dtype).removeprefix("torch.")


def name_of(kernel: Any) -> str:
    """The name of a kernel: that of its file."""
    return str(getattr(kernel, "__name__", type(kernel).__name__)).rpartition(".")[2]


def answers_through_kernels(module: Attention) -> bool:
    """True if a call uses a kernel for all its queries and samples nothing, so that rows can be recomputed from that."""
    gathers = isinstance(module, Stateful) or getattr(module, "centre", None) is not None
    return not gathers and not getattr(module.normalise, "random", False)


@contextmanager
def instead(module: nn.Module, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Let a module call `function` for its method `name`, for this one instance and as long as this lasts."""
    before: Sequence[Any] = [module.__dict__[name]] if name in module.__dict__ else []
    object.__setattr__(module, name, function)
    try:
        yield
    finally:
        object.__delattr__(module, name)
        if before:
            object.__setattr__(module, name, before[0])
