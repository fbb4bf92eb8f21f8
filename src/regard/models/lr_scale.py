"""Learning rate scale of attention matrices whose inputs have variance one, as norms and scaled embeddings leave them."""

from typing import Protocol, TypeVar, runtime_checkable

from regard.attention.module import Attention

AnyAttention = TypeVar("AnyAttention", bound=Attention | None)


@runtime_checkable
class ScalableRate(Protocol):
    """Score or mechanism that can give its matrices a `pace`, by which the optimizer multiplies their learning rate."""

    def steady(self) -> None: ...


def scale_learning_rate(attention: AnyAttention) -> AnyAttention:
    """Prepare an attention for queries and keys of variance one, by lower learning rates of its matrices.

    One step of Adam may move each number of W in qᵀ W k by the learning rate, and so a score by the rate times d or more.
    States of a recurrent network are small, and W has to make up for it; behind a norm scores grow far wider than one within
    a few updates, softmax saturates on one key, and nothing is learned of the others. With Adam, a learning rate of 1/√d for
    W equals a score of qᵀ W k / √d, and leaves the formula, and trained models, as they are.
    """
    for module in () if attention is None else attention.modules():
        if isinstance(module, ScalableRate):
            module.steady()
    return attention
