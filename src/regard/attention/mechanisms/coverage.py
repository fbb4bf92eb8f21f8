"""Coverage attention, See's: the score depends on the sum of the weights so far."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.mechanisms._coverage import CoverageBase
from regard.attention.types import Memory


class Coverage(CoverageBase):
    """Additive attention with a coverage term, against repeating or omitting parts of the source.

        e_ti = vᵀ tanh(W s_t + U h_i + w c_ti + b),    a_t = softmax(e_t),    c_ti = Σ_{t' < t} a_t'i

    See, Liu and Manning 2017, eq. 10 and 11, https://arxiv.org/abs/1704.04368
    That is the linguistic coverage of Tu et al. 2016, https://arxiv.org/abs/1601.04811, with a fertility of 1 for every
    word; `fertility` learns one for each, and `gated_coverage` is their other model. The state is the coverage c, which
    starts at 0. The coverage loss of See et al. is a part of training.
    Cost: that of Additive, one query after the other.
    """

    def __init__(self, query: int, key: int | None = None, **options: Any):
        super().__init__(query, key, score="additive", **options)
        self.w = nn.Linear(1, self.score.v.weight.shape[-1])
        nn.init.zeros_(self.w.bias)

    def add_coverage(self, memory: Memory, state: Float[Tensor, "batch keys"]) -> Memory:
        """U k + w c + b."""
        return memory._replace(keys=memory.keys + self.w(state[:, None, :, None]))
