"""Cross-attention of any other kind in the CPU engine: calls the module, with its state."""

from typing import cast

from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.types import Memory
from regard.decoding.engines.cpu.linear import Affine
from regard.models.layers.beam_attention import attend_beams
from regard.tree import select


class ModuleAttention:
    """Cross-attention module over the sources of one batch, in float32; `behind` is the projection after it."""

    def __init__(self, attention: Attention, memory: Memory, behind: Affine | None):
        self.attention, self.memory, self.behind = attention, memory, behind
        self.state, self.place = attention.start(memory), 0

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sources; the state follows with its rows."""
        self.memory = cast(Memory, select(self.memory, staying))

    def follow(self, parents: Int[Tensor, " rows"]) -> None:
        """Reorder the state by back-pointers."""
        self.state = select(self.state, parents)

    def __call__(self, query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows context"]:
        """Context of each row."""
        attended = attend_beams(self.attention, query[:, None], self.memory, self.state, position=self.place)
        self.state, self.place = attended.state, self.place + 1
        found: Tensor = attended.context[:, 0]
        return found

    def onto(self, before: Float[Tensor, "rows out"], query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows out"]:
        """Add the projected context to `before`, in place."""
        found = self(query)
        return before.add_(found) if self.behind is None else self.behind.onto(before, found)
