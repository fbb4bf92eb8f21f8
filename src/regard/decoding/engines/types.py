"""Interfaces between search and decoding engines."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.decoding.hypothesis import Hypothesis
from regard.tree import Tree

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Array = NDArray[Any]


@runtime_checkable
class Steps(Protocol):
    """Decoder state of one batch, which a step changes in place, unlike `Decoder.step`.

    Rows are sentences x width, as everywhere. `step` gets a token for each row, and its back-pointer to a row of the step
    before; None where rows are unchanged. `leave` comes between two steps: only these sentences stay, by their indices in
    the step before, and `parents` of the next step still counts the rows of that step.
    """

    def leave(self, staying: Int[Tensor, " staying"]) -> None: ...

    def step(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None
    ) -> Float[Tensor, "rows vocabulary"]: ...


@runtime_checkable
class Engine(Protocol):
    """Decoder prepared for search, once for all batches."""

    def begin(self, memory: Tree) -> Steps: ...


@runtime_checkable
class SearchEngine(Engine, Protocol):
    """Engine with a search of its own, equal to `engines.eager.beam`, for sentences with a length limit of 1 or more."""

    def search(
        self, memory: Tree, most: NDArray[np.int64], beams: int, best: int, length_penalty: float
    ) -> list[list[Hypothesis]]: ...
