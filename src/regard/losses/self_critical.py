"""Self-critical training: REINFORCE with the reward of greedy search as baseline."""

from jaxtyping import Bool, Float
from torch import Tensor


def self_critical(
    logs: Float[Tensor, "batch outputs"],
    rewards: Float[Tensor, "batch outputs"],
    keep: Bool[Tensor, "batch outputs"],
    expected: Float[Tensor, " batch"],
) -> Float[Tensor, " batch"]:
    """Risk of each source: the mean of 1 - reward over the outputs sampled for it.

        its gradient is that of  -(r(y) - r(ŷ)) log p(y | x),    y drawn, ŷ by greedy search

    whose mean is that of the expected loss: the baseline `expected`, r(ŷ), does not depend on the sample, and only lowers
    the variance. Rennie et al. 2017, https://arxiv.org/abs/1612.00563
    Unlike the paper, several outputs may be sampled for one source, and their mean is taken. The policy gradient term adds
    to the gradient and 0 to the value.
    """
    steering = -(rewards - expected[:, None]) * logs
    each = (1 - rewards + steering - steering.detach()).masked_fill(~keep, 0.0)
    return each.sum(-1) / keep.sum(-1)
