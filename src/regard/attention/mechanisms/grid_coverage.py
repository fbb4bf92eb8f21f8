"""Coverage on a map, WAP's: attention that knows what was read around each place of a picture."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.mechanisms._coverage import Covering
from regard.attention.types import Memory


class GridCoverage(Covering):
    """Tell each place of a map how much was read there and around it so far, so that no symbol is read twice or forgotten.

        F_t = Q * Σ_{t' < t} a_t',    e_ti = vᵀ tanh(W s_t + U h_i + V f_ti + b),    a_t = softmax(e_t)

    Zhang et al. 2017, "Watch, attend and parse", Pattern Recognition 71; Zhang, Du and Dai 2018,
    https://arxiv.org/abs/1801.03530
    Q holds `filters` convolutions of `kernel` x `kernel` places. The rows and columns come with the source (Encoded.grid);
    a source without them is one row. The state is the sum of all weights so far, which starts at 0. V Q is linear, so
    more than `kernel`² filters would tell nothing more.
    Cost: that of Additive, one query after the other, and a convolution of time O(S kernel² filters) for each.
    """

    def __init__(self, query: int, key: int | None = None, *, filters: int = 64, kernel: int = 11, **options: Any):
        super().__init__(query, key, score="additive", **options)
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"GridCoverage needs an odd kernel, which has a middle, got {kernel}")
        self.Q = nn.Conv2d(1, filters, kernel, padding=kernel // 2, bias=False)
        self.V = nn.Linear(filters, self.score.v.weight.shape[-1])
        nn.init.zeros_(self.V.bias)

    def told(self, memory: Memory, state: Float[Tensor, "batch keys"]) -> Memory:
        """U k + V f + b: the memory, each key of which knows what was read around it."""
        keys = memory.keys.shape[2]
        rows, columns = (1, keys) if memory.grid is None else memory.grid
        if rows * columns != keys:
            raise ValueError(
                f"GridCoverage needs a source with as many places as its grid, got {keys} for {rows} x {columns}; "
                "Encoded.grid says how many rows and columns there are"
            )
        covered = torch.unflatten(state, 1, (rows, columns))[:, None]
        covered = F.pad(covered, (0, 1))  # a zero more, since nothing convolves a map without places
        features = self.V(self.Q(covered)[..., :-1].flatten(2).mT)  # batch keys hidden
        return memory._replace(keys=memory.keys + features[:, None])
