"""Interfaces of encoders and decoders, so that they mix freely and search depends on nothing else."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Shaped
from torch import Tensor

from regard.attention.types import Attended, Encoded, State
from regard.models.layers.pointer import CopyParts
from regard.tree import Tree


class Step(NamedTuple):
    """Output of a decoder: logits or numbers, the next state, and the output of each attention by module path."""

    output: Float[Tensor, "..."]
    state: State
    attended: Mapping[str, Attended]
    copying: CopyParts | None = None
    """Parts of the mixture of a decoder that copies."""


@runtime_checkable
class Encoder(Protocol):
    """Encoder protocol: a source of the encoder's modality in, vectors of `size` and their padding mask out."""

    size: int

    def __call__(self, source: Any, /) -> Encoded: ...


@runtime_checkable
class Decoder(Protocol):
    """Decoder protocol: predicts one position per step or, with teacher forcing, all at once; the two must agree.

    Its inputs are tokens, or vectors of numbers such as frames or values.

    `step` may get several rows for each source, side by side (the beams of a search): rows = sources x beams. It folds them
    into the query axis of each attention, so that one memory serves all beams of a source.
    """

    def remember(self, encoded: Encoded) -> Tree: ...

    def start(self, memory: Tree) -> State: ...

    def step(
        self, token: Shaped[Tensor, "rows *channels"], memory: Tree, state: State, *, weights: bool = False
    ) -> Step: ...

    def __call__(
        self,
        target: Shaped[Tensor, "batch time *channels"],
        memory: Tree,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
    ) -> Step: ...
