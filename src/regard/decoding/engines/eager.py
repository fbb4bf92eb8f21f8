"""Any decoder, as it is: what the engine takes where nothing faster is known."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.engines.types import Steps
from regard.models.types import Decoder
from regard.tree import Tree, select


@dataclass(frozen=True)
class Any:
    """A decoder's own step; its state is reordered before each."""

    decoder: Decoder

    def begin(self, memory: Tree) -> Steps:
        """The decoder before its first token."""
        return Stepping(self.decoder, memory)


class Stepping:
    """One batch: its memory and its state."""

    def __init__(self, decoder: Decoder, memory: Tree):
        self.decoder, self.memory = decoder, memory
        self.state = decoder.start(memory)

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Let go of the other sentences; the state follows with its rows."""
        self.memory = select(self.memory, staying)

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None) -> Float[Tensor, "rows vocabulary"]:
        """One token for each row."""
        state = self.state if parents is None else select(self.state, parents)
        found = self.decoder.step(tokens, self.memory, state)
        self.state = found.state
        return found.output
