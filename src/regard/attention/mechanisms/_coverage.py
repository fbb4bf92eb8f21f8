"""Base of the coverage mechanisms, whose keys depend on the weights so far."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.scope import Offset
from regard.attention.stateful import Stateful
from regard.attention.types import Attended, Memory

Read = Float[Tensor, "batch keys"]


class CoverageBase(Stateful):
    """Stateful attention with a coverage vector: the state is the sum of each key's weights so far, from 0 on.

    memory' = told(memory, state),    a_t = attend(query, memory'),    state = after(state, a_t)

    A subclass defines how the coverage enters the keys.
    """

    def start(self, memory: Memory) -> Read:
        """The coverage before the first query: zeros."""
        return memory.values.new_zeros(memory.values.shape[0], memory.values.shape[2])

    @abstractmethod
    def told(self, memory: Memory, state: Read) -> Memory:
        """The memory with the coverage added to its keys."""

    def after(self, state: Read, read: Read) -> Read:
        """The coverage after a step: the sum of all weights."""
        return state + read

    def look(
        self, query: Float[Tensor, "batch 1 query"], memory: Memory, state: Read, *, offset: Offset, weights: bool
    ) -> Attended:
        """Attend to the keys with their coverage, and add the new weights to it."""
        found = Attention.forward(self, query, self.told(memory, state), offset=offset, weights=True)
        assert found.weights is not None, "they were asked for"
        after = self.after(state, found.weights[:, 0, 0])
        return found._replace(weights=found.weights if weights else None, state=after)
