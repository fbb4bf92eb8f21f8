"""Location-sensitive attention, Chorowski's: attention that knows where it looked last."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.mechanisms._coverage import Covering
from regard.attention.types import Memory


class LocationSensitive(Covering):
    """Tell each key what was read around it in the look before, so that attention can move on from there.

        f_i = F * a_{i-1},    e_ij = vᵀ tanh(W s_{i-1} + U h_j + V f_ij + b),    a_i = softmax(e_i)

    Chorowski et al. 2015, section 2.2, https://arxiv.org/abs/1506.07503
    F holds `filters` convolutions of `kernel` positions each, by default as many as in Shen et al. 2018,
    https://arxiv.org/abs/1712.05884, who convolve the sum of all looks so far: cumulative=True. The state is that sum, or
    the weights of the look before, and starts at 0. The paper's sharpening to the best frames is normalise="top_k".
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

    def told(self, memory: Memory, state: Float[Tensor, "batch keys"]) -> Memory:
        """U k + V f + b: the memory, each key of which knows what was read around it."""
        looked = F.pad(state[:, None], (0, 1))  # a zero more, since nothing convolves a source without keys
        features = self.V(self.F(looked).mT)[:, :-1]  # batch keys hidden
        return memory._replace(keys=memory.keys + features[:, None])

    def after(self, state: Float[Tensor, "batch keys"], read: Float[Tensor, "batch keys"]) -> Float[Tensor, "batch keys"]:
        """All that was read or, without `cumulative`, what was read last."""
        return super().after(state, read) if self.cumulative else read
