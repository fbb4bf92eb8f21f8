"""Shaw's relative position attention, for keys and values."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from regard.attention.normalise import widen
from regard.attention.per_head import PerHead
from regard.attention.scope import Offset
from regard.attention.score import require_size
from regard.attention.score.relative import Relative


class Shaw(Relative):
    """Scaled dot product with relative position embeddings added to the keys and to the values.

        score(q at i, k at j) = qᵀ (k + a_c) / √d,    c = max(-window, min(window, j - i))
        context_i = Σ_j weight_ij (v_j + b_c)

    Shaw, Uszkoreit and Vaswani 2018, eq. 3 and 4 and section 3.2, https://arxiv.org/abs/1803.02155
    The term beside the values is Σ_c b_c (Σ_{j at c} weight_ij): the weights are summed by distance and multiplied by a
    table of 2 window + 1 vectors. Without b this is `relative`. Unlike the paper's, each head has its own a and b, unless
    heads=1.
    Cost: that of Relative, and O(T S + T window d) for the context; no T S d. No fused kernel.
    """

    adds: ClassVar[bool] = True

    def __init__(self, key: int, value: int | None = None, window: int = 16, heads: int = 1, scale: float | None = None):
        super().__init__(key, window, heads, scale)
        self.value = key if value is None else value
        self.b = PerHead(2 * window + 1, self.value, heads)

    def combine(
        self,
        weights: Float[Tensor, "batch share_heads queries keys"],
        values: Float[Tensor, "batch value_heads keys value"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch heads queries value"]:
        """weights @ (v + b)."""
        require_size("Shaw", "value", self.value, values.shape[-1])
        return weights @ values + self.b(self.by_distance(weights, offset))

    def by_distance(
        self, weights: Float[Tensor, "batch heads queries keys"], offset: Offset
    ) -> Float[Tensor, "batch heads queries distances"]:
        """Weights summed by clipped distance, from `window` or more before the query to `window` or more after it."""
        queries, keys = weights.shape[2:]
        which = self.which(queries, keys, offset, weights.device).expand(weights.shape)
        shares = widen(weights)  # half precision would lose the many small weights of far keys
        nothing = shares.new_zeros(*shares.shape[:3], 2 * self.window + 1)
        return nothing.scatter_add(-1, which, shares).to(weights.dtype)
