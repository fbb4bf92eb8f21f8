"""What the search asks of a decoder whose tensors stay where they are."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.engines.candidates import Numbers
from regard.tree import Tree

Counter = Int[Tensor, " 1"]
"""A number that a graph reads where it stands."""
Project = Callable[[Float[Tensor, "rows size"]], Float[Tensor, "rows vocabulary"]]


@runtime_checkable
class Steps(Protocol):
    """A decoder at work on so many sentences, each with `width` rows side by side.

    `begin` takes a batch in: these rows of its memory, in this order; there may be room for more, and nobody listens to
    those. `take` goes on from other steps, whose sentences are picked. `step` feeds a token to each row, which grew from the
    row `parents` of its sentence, and gives what `project` makes logits of, some rows at a time. `prepare` launches the
    programs of such a step and computes nothing else, so that they are compiled (kernels/runtime/compile.py), and gives room
    for a row of logits.
    """

    def begin(self, memory: Tree, rows: Numbers) -> None: ...

    def take(self, other: "Steps", rows: Int[Tensor, " sentences"]) -> None: ...

    def step(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter
    ) -> Float[Tensor, "rows size"]: ...

    def prepare(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter
    ) -> Float[Tensor, "1 vocabulary"]: ...

    def project(self, found: Float[Tensor, "rows size"]) -> Float[Tensor, "rows vocabulary"]: ...


@runtime_checkable
class Engine(Protocol):
    """A decoder made ready for such steps."""

    vocabulary: int
    limit: int | None
    """The most steps that it can make; None: any number."""

    def steps(self, memory: Tree, sentences: int, width: int, room: int) -> Steps:
        """Steps for sentences that have read sources shaped like these."""

    def refuse(self) -> None:
        """Raise the decoder's own error for a step beyond its limit."""
