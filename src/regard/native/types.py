"""What the engine's search asks of a decoder: begin with a batch, and go on from there."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from regard.models.types import Tree


@runtime_checkable
class Steps(Protocol):
    """A decoder at work on one batch. It keeps what the steps so far have found: unlike `Decoder.step`, this changes it.

    Rows are sentences x width, as everywhere. `step` gets a token for each row, and the row of the step before that each has
    grown from; None where rows are as they were. `leave` comes between two steps: only these sentences stay, counted as they
    stood in the step before, and `parents` of the next step still counts the rows of that step.
    """

    def leave(self, staying: Int[Tensor, " staying"]) -> None: ...

    def step(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None
    ) -> Float[Tensor, "rows vocabulary"]: ...


@runtime_checkable
class Engine(Protocol):
    """A decoder made ready for searching, once for all batches."""

    def begin(self, memory: Tree) -> Steps: ...
