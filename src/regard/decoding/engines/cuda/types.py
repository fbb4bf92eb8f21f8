"""Interfaces between the GPU search and decoders with fixed buffers."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.engines.types import Numbers
from regard.tree import Tree

Counter = Int[Tensor, " 1"]
"""Number on the device, which a CUDA graph reads at its address."""
Project = Callable[[Float[Tensor, "rows size"]], Float[Tensor, "rows vocabulary"]]


@runtime_checkable
class Steps(Protocol):
    """Decoder state of a number of sentences, each with `width` rows side by side, in fixed buffers.

    `begin` copies a batch in: these rows of its memory, in this order; spare rows are ignored. `take` copies selected
    sentences of other steps. `step` feeds a token to each row, which extends the row `parents` of its sentence, and returns
    what `project` turns into logits, some rows at a time. `prepare` launches the kernels of such a step and computes nothing
    else, so that they are compiled (kernels/runtime/compile.py), and allocates a row of logits.
    """

    def begin(self, memory: Tree, rows: Numbers) -> None: ...

    def take(self, other: "Steps", rows: Int[Tensor, " sentences"]) -> None: ...

    def step(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter
    ) -> Float[Tensor, "rows size"]: ...

    def prepare(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter
    ) -> Float[Tensor, "1 vocabulary"]: ...

    def project(self, hidden: Float[Tensor, "rows size"]) -> Float[Tensor, "rows vocabulary"]: ...


@runtime_checkable
class Engine(Protocol):
    """Decoder prepared for such steps."""

    vocabulary: int
    limit: int | None
    """Maximum number of steps; None: unlimited."""

    def steps(self, memory: Tree, sentences: int, width: int, room: int) -> Steps:
        """Allocate the buffers of steps for sentences with memories of this shape."""

    def refuse(self) -> None:
        """Raise the decoder's own error for a step beyond its limit."""
