"""Location-sensitive attention, Chorowski's: a convolution of the previous weights enters the score."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.mechanisms._coverage import CoverageBase
from regard.attention.types import Memory


class LocationSensitive(CoverageBase):
    """Additive attention whose score sees the convolved weights of the previous step, so that it can move on from there.

        f_i = F * a_{i-1},    e_ij = vᵀ tanh(W s_{i-1} + U h_j + V f_ij + b),    a_i = softmax(e_i)

    Chorowski et al. 2015, section 2.2, https://arxiv.org/abs/1506.07503
    F holds `filters` convolutions of `kernel` positions each, by default as many as in Shen et al. 2018,
    https://arxiv.org/abs/1712.05884, who convolve the sum of all weights so far: cumulative=True. The state is that sum, or
    the weights of the previous step, and starts at 0. The paper's sharpening to the best frames is normalise="top_k".
    Cost: that of Additive, one query after the other, and a convolution of time O(S kernel filters) for each.
    """

    def __init__(
        self,
        query: int,
        key: int | None = None,
        *,
        filters: int = 32,
        kernel: int = 31,
        cumulative: bool = False,
        **options: Any,
    ):
        super().__init__(query, key, score="additive", **options)
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"LocationSensitive needs an odd kernel, which has a middle, got {kernel}")
        self.F = nn.Conv1d(1, filters, kernel, padding=kernel // 2, bias=False)
        self.V = nn.Linear(filters, self.score.v.weight.shape[-1])
        nn.init.zeros_(self.V.bias)
        self.cumulative = cumulative

    def add_coverage(self, memory: Memory, state: Float[Tensor, "batch keys"]) -> Memory:
        """The memory with the convolved weights in its keys, U k + V f + b."""
        padded = F.pad(state[:, None], (0, 1))  # one zero more, since a convolution refuses an empty source
        features = self.V(self.F(padded).mT)[:, :-1]  # batch keys hidden
        return memory._replace(keys=memory.keys + features[:, None])

    def update(
        self, state: Float[Tensor, "batch keys"], weights: Float[Tensor, "batch keys"]
    ) -> Float[Tensor, "batch keys"]:
        """The sum of all weights or, without `cumulative`, the weights of this step."""
        return super().update(state, weights) if self.cumulative else weights
