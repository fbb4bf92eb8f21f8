"""Hard alignments: links from weights."""

from collections.abc import Sequence
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from regard.alignment.head import Head
from regard.alignment.links import Links
from regard.alignment.soft import Soft
from regard.alignment.words import joined, merge
from regard.decoding.align import align

Merge = Literal["weights", "links"]
"""What the tokens of a word give to it."""


def hard(pair: Soft, head: Head = Head(), *, threshold: float | None = None, by: Merge = "weights") -> Links:
    """The links of one pair as one head sees them.

    `by="weights"` merges the weights of tokens to those of words, and then links; `by="links"` links tokens, and then
    words any of whose tokens are linked. The end of the source takes part in neither: no word stands there.
    """
    weights = head.read(pair.weights)
    if by == "weights":
        return linked(merge(weights, pair.source, pair.target), threshold)
    real = pair.source.members.any(0)
    return joined(linked(weights * real, threshold), pair.source, pair.target)


def linked(weights: Float[Tensor, "target source"], threshold: float | None = None) -> Links:
    """For each target the source it looked at most; with a `threshold` every source that has more than this weight.

    link(i, j)  ⇔  p_ji > threshold
    """
    if threshold is None:
        return frozenset(align(weights[None]))
    return frozenset((source, target) for target, source in (weights > threshold).nonzero().tolist())


def every(
    pairs: Sequence[Soft], head: Head = Head(), *, threshold: float | None = None, by: Merge = "weights"
) -> list[Links]:
    """The links of many pairs."""
    return [hard(pair, head, threshold=threshold, by=by) for pair in pairs]
