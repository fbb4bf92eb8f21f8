"""Self-critical training: an output that beats the model's own best guess becomes more likely."""

from jaxtyping import Bool, Float
from torch import Tensor


def self_critical(
    logs: Float[Tensor, "batch outputs"],
    rewards: Float[Tensor, "batch outputs"],
    keep: Bool[Tensor, "batch outputs"],
    expected: Float[Tensor, " batch"],
) -> Float[Tensor, " batch"]:
    """The risk of each source: the mean of 1 - reward over the outputs drawn for it.

        its gradient is that of  -(r(y) - r(ŷ)) log p(y | x),    y drawn, ŷ by greedy search

    whose mean is that of the expected loss: `expected`, r(ŷ), does not depend on the draw, and only takes noise away.
    Rennie et al. 2017, https://arxiv.org/abs/1612.00563
    Unlike the paper, several outputs may be drawn for one source, and their mean is taken. What only steers adds to the
    gradient and 0 to the figure.
    """
    steering = -(rewards - expected[:, None]) * logs
    each = (1 - rewards + steering - steering.detach()).masked_fill(~keep, 0.0)
    return each.sum(-1) / keep.sum(-1)
