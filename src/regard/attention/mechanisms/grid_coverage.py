"""Coverage on a feature map, WAP's: a convolution of the weights so far enters the score."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.mechanisms._coverage import CoverageBase
from regard.attention.types import Memory


class GridCoverage(CoverageBase):
    """Coverage attention over a feature map, whose coverage is convolved in two dimensions.

        F_t = Q * Σ_{t' < t} a_t',    e_ti = vᵀ tanh(W s_t + U h_i + V f_ti + b),    a_t = softmax(e_t)

    Zhang et al. 2017, "Watch, attend and parse", Pattern Recognition 71; Zhang, Du and Dai 2018,
    https://arxiv.org/abs/1801.03530
    Q holds `filters` convolutions of `kernel` x `kernel` positions. The rows and columns come with the source
    (Encoded.grid); a source without them is one row. The state is the sum of all weights so far, which starts at 0. V Q is
    linear, so more than `kernel * kernel` filters would add nothing.
    Cost: that of Additive, one query after the other, and a convolution of time O(S kernel² filters) for each.
    """

    def __init__(self, query: int, key: int | None = None, *, filters: int = 64, kernel: int = 11, **options: Any):
        super().__init__(query, key, score="additive", **options)
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"GridCoverage needs an odd kernel, which has a middle, got {kernel}")
        self.Q = nn.Conv2d(1, filters, kernel, padding=kernel // 2, bias=False)
        self.V = nn.Linear(filters, self.score.v.weight.shape[-1])
        nn.init.zeros_(self.V.bias)

    def add_coverage(self, memory: Memory, state: Float[Tensor, "batch keys"]) -> Memory:
        """The memory with the convolved weights in its keys, U k + V f + b."""
        keys = memory.keys.shape[2]
        rows, columns = (1, keys) if memory.grid is None else memory.grid
        if rows * columns != keys:
            raise ValueError(
                f"GridCoverage needs a source with as many places as its grid, got {keys} for {rows} x {columns}; "
                "Encoded.grid says how many rows and columns there are"
            )
        coverage = torch.unflatten(state, 1, (rows, columns))[:, None]
        coverage = F.pad(coverage, (0, 1))  # one zero more, since a convolution refuses an empty map
        features = self.V(self.Q(coverage)[..., :-1].flatten(2).mT)  # batch keys hidden
        return memory._replace(keys=memory.keys + features[:, None])
