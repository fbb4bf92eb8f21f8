"""Stateful attention, in which each step depends on the weights of the steps before."""

from abc import abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.module import Attention
from regard.attention.scope import Offset
from regard.attention.scope.padding import Padding
from regard.attention.statistics import measure
from regard.attention.types import Attended, Memory, Sampled, State


class Stateful(Attention):
    """Base of mechanisms that carry a state from query to query.

        state = attention.start(memory)                       a tree of tensors, batch first
        attended = attention(query, memory, state)            any number of queries, one after the other
        attended.state                                        the state of the next step

    A subclass defines `start` and `step`, one query; several queries are several steps, so that a decoder with teacher
    forcing calls it once.
    """

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first query."""

    @abstractmethod
    def step(
        self, query: Float[Tensor, "batch 1 query"], memory: Memory, state: State, *, offset: Offset, weights: bool
    ) -> Attended:
        """One query, at position `offset`: its context, its weights if requested, and the next state."""

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
        """Attend with one query after the other, from the initial state and position 0 by default."""
        self.check(query, memory, statistics, documents)
        first = 0 if offset is None else offset
        state = self.start(memory) if isinstance(state, tuple) and not state else state
        if not query.shape[1]:
            raise ValueError(f"{type(self).__name__} needs at least one query, got none")
        wanted = weights or bool(statistics)
        attended = self.run_steps(query, memory, state, offset=first, weights=wanted)
        dense = attended.weights
        if not wanted or dense is None:
            return attended._replace(weights=None)
        measured = measure(dense, self.allowed(dense, memory, first), statistics) if statistics else {}
        return attended._replace(weights=dense if weights else None, statistics=measured)

    def run_steps(
        self, query: Float[Tensor, "batch queries query"], memory: Memory, state: State, *, offset: Offset, weights: bool
    ) -> Attended:
        """Attend with all queries, one step each; a mechanism that can run them in parallel overrides this."""
        steps = list[Attended]()
        for position in range(query.shape[1]):
            steps.append(
                self.step(query[:, position : position + 1], memory, state, offset=offset + position, weights=weights)
            )
            state = steps[-1].state
        return concatenate_steps(steps)

    @property
    def positional(self) -> bool:
        """True: steps are sequential."""
        return True

    @property
    def unpackable(self) -> str | None:
        """The reason against packed rows: the state would leak into the next example."""
        return "carries a state from query to query, and packed rows need an attention without one"

    @property
    def gathers(self) -> bool:
        """True if it gathers the few keys it reads, so that one memory serves several rows of queries (hypotheses)."""
        return False

    def allowed(self, like: Float[Tensor, "batch heads queries keys"], memory: Memory, offset: Offset) -> Tensor | None:
        """The mask of scope and padding, for weights of this shape."""
        scope = self.scope if memory.keep is None else self.scope & Padding(memory.keep)
        return scope.allowed(*like.shape, offset, like.device)


def concatenate_steps(steps: list[Attended]) -> Attended:
    """Concatenate steps along the axis of queries; later keys have weight 0 in a step with fewer keys."""
    context = torch.cat([step.context for step in steps], dim=1)
    weights = [step.weights for step in steps if step.weights is not None]
    sampled = [step.sampled for step in steps if step.sampled is not None]
    longest = max((step_weights.shape[3] for step_weights in weights), default=0)
    return Attended(
        context,
        torch.cat([F.pad(step_weights, (0, longest - step_weights.shape[3])) for step_weights in weights], dim=2)
        if weights
        else None,
        state=steps[-1].state,
        sampled=Sampled(*(torch.cat(step_weights, dim=2) for step_weights in zip(*sampled, strict=True)))
        if sampled
        else None,
    )
