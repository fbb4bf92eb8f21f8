"""Products of what has variance one, as norms and scaled embeddings leave it: their matrices take smaller steps."""

from typing import Protocol, TypeVar, runtime_checkable

from regard.attention.module import Attention

Made = TypeVar("Made", bound=Attention | None)


@runtime_checkable
class Steady(Protocol):
    """A score or a mechanism that can give its matrices a `pace`, by which the optimiser multiplies their rate."""

    def steady(self) -> None: ...


def steady(attention: Made) -> Made:
    """The attention, ready for queries and keys of variance one.

    One step of Adam may move each number of W in qᵀ W k by the rate, and so a score by the rate times d or more.
    States of a recurrent network are small, and W has to make up for it; behind a norm scores grow far wider than one
    within a few updates, softmax sees one key, and nothing is learned of the others. With Adam, a rate of 1/√d for W is the
    same as a score of qᵀ W k / √d, and leaves the formula, and models that are trained, as they are.
    """
    for module in () if attention is None else attention.modules():
        if isinstance(module, Steady):
            module.steady()
    return attention
