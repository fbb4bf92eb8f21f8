"""Base of the coverage mechanisms, whose keys depend on the weights so far."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.scope import Offset
from regard.attention.stateful import Stateful
from regard.attention.types import Attended, Memory, State

Weights = Float[Tensor, "batch keys"]


class CoverageBase(Stateful):
    """Stateful attention with a coverage vector: the state is the sum of each key's weights so far, from 0 on.

    memory' = add_coverage(memory, state),    a_t = attend(query, memory'),    state = update(state, a_t)

    A subclass defines how the coverage enters the keys.
    """

    def start(self, memory: Memory) -> State:
        """The coverage before the first query: zeros."""
        return memory.values.new_zeros(memory.values.shape[0], memory.values.shape[2])

    @abstractmethod
    def add_coverage(self, memory: Memory, state: Weights) -> Memory:
        """The memory with the coverage added to its keys."""

    def update(self, state: Weights, weights: Weights) -> Weights:
        """The coverage after a step: the sum of all weights."""
        return state + weights

    def step(
        self, query: Float[Tensor, "batch 1 query"], memory: Memory, state: State, *, offset: Offset, weights: bool
    ) -> Attended:
        """Attend to the keys with their coverage, and add the new weights to it."""
        attended = Attention.forward(self, query, self.add_coverage(memory, state), offset=offset, weights=True)
        assert attended.weights is not None, "weights=True returns them"
        coverage = self.update(state, attended.weights[:, 0, 0])
        return attended._replace(weights=attended.weights if weights else None, state=coverage)
