"""Eager engine: any decoder as a module, where no faster engine covers it."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.engines.types import Steps
from regard.models.types import Decoder
from regard.tree import Tree, select


@dataclass(frozen=True)
class EagerEngine:
    """Eager engine, which calls the decoder's own step; its state is reordered before each."""

    decoder: Decoder

    def begin(self, memory: Tree) -> Steps:
        """Initial state of a batch, before the first token."""
        return EagerSteps(self.decoder, memory)


class EagerSteps:
    """Decoder state of one batch, with its memory."""

    def __init__(self, decoder: Decoder, memory: Tree):
        self.decoder, self.memory = decoder, memory
        self.state = decoder.start(memory)

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences; the state follows with its rows."""
        self.memory = select(self.memory, staying)

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None) -> Float[Tensor, "rows vocabulary"]:
        """Decoding step: one token for each row in, logits out."""
        state = self.state if parents is None else select(self.state, parents)
        step = self.decoder.step(tokens, self.memory, state)
        self.state = step.state
        return step.output
