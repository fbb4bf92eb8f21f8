"""What the engine's search asks of a decoder: begin with a batch, and go on from there."""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.decoding.hypothesis import Found
from regard.tree import Tree


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


@runtime_checkable
class Searching(Engine, Protocol):
    """An engine that searches itself: what `native.beam` finds over it, for sentences of which each may have a token."""

    def search(
        self, memory: Tree, most: NDArray[np.int64], beams: int, best: int, length_penalty: float
    ) -> list[list[Found]]: ...
