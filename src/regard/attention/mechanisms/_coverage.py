"""Attention whose keys are told what was read so far."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.scope import Offset
from regard.attention.stateful import Stepping
from regard.attention.types import Attended, Memory

Read = Float[Tensor, "batch keys"]


class Covering(Stepping):
    """The state is a number for each key, which starts at 0: what was read of it. A subclass says how keys are told that.

    memory' = told(memory, state),    a_t = attend(query, memory'),    state = after(state, a_t)
    """

    def start(self, memory: Memory) -> Read:
        """Nothing was read yet."""
        return memory.values.new_zeros(memory.values.shape[0], memory.values.shape[2])

    @abstractmethod
    def told(self, memory: Memory, state: Read) -> Memory:
        """The memory, each key of which knows what was read."""

    def after(self, state: Read, read: Read) -> Read:
        """What was read with one look more: all of it."""
        return state + read

    def look(
        self, query: Float[Tensor, "batch 1 query"], memory: Memory, state: Read, *, offset: Offset, weights: bool
    ) -> Attended:
        """Attend to keys that know what was read, and remember what is read now."""
        found = Attention.forward(self, query, self.told(memory, state), offset=offset, weights=True)
        assert found.weights is not None, "they were asked for"
        after = self.after(state, found.weights[:, 0, 0])
        return found._replace(weights=found.weights if weights else None, state=after)
