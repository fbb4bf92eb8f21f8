"""What encoders and decoders promise, so that they mix freely and search knows nothing else of them."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.types import Attended, Encoded, State
from regard.data.batch import Padded
from regard.data.image.batch import Pictures
from regard.tree import Tree

Source = Padded | Pictures
"""What an encoder reads."""


class Step(NamedTuple):
    """What a decoder gives: logits, the state to carry on with, and what each attention saw, by module path."""

    output: Float[Tensor, "..."]
    state: State
    attended: Mapping[str, Attended]


@runtime_checkable
class Encoder(Protocol):
    """Token numbers in, one vector of `size` for each out."""

    size: int

    def __call__(self, source: Padded) -> Encoded: ...


@runtime_checkable
class Decoder(Protocol):
    """Writes a target, one token at a time or, taught, all at once; the two must agree.

    `step` may get several rows for each source, side by side (the beams of a search): rows = sources x beams. It folds them
    into the query axis of each attention, so that one memory serves all beams of a sentence.
    """

    def remember(self, encoded: Encoded) -> Tree: ...

    def start(self, memory: Tree) -> State: ...

    def step(self, token: Int[Tensor, " rows"], memory: Tree, state: State, *, weights: bool = False) -> Step: ...

    def __call__(
        self, target: Int[Tensor, "batch time"], memory: Tree, *, weights: bool = False, statistics: tuple[str, ...] = ()
    ) -> Step: ...
