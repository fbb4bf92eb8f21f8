"""What encoders and decoders promise, so that they mix freely and search knows nothing else of them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard.attention.types import Attended, Encoded, State
from regard.data.batch import Padded
from regard.data.image.batch import Pictures

Source = Padded | Pictures
"""What an encoder reads."""
Tree = Any
"""Tensors in tuples, named tuples, lists and dicts, batch first; None and () hold nothing."""


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


def map_tree(function: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """The same tree with `function` applied to every tensor."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {name: map_tree(function, each) for name, each in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tree(function, each) for each in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_tree(function, each) for each in tree)
    return tree


def select(tree: Tree, rows: Int[Tensor, " chosen"]) -> Tree:
    """These rows of every tensor, in this order: how search reorders a state and drops what is finished."""
    return map_tree(lambda tensor: tensor.index_select(0, rows), tree)


def repeat(tree: Tree, times: int) -> Tree:
    """Every row `times` over, side by side: one for each beam."""
    return map_tree(lambda tensor: beside(tensor, times), tree)


def beside(tensor: Shaped[Tensor, "rows *rest"], times: int) -> Shaped[Tensor, "more *rest"]:
    """Every row of a tensor `times` over: repeat_interleave, by operators that an exporter knows for any `times`."""
    return tensor[:, None].expand(-1, times, *tensor.shape[1:]).flatten(0, 1)
