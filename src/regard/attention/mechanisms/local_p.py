"""Local attention with predictive alignment, "local-p" in Luong et al."""

from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.local import Windows
from regard.attention.scope import Offset


class LocalP(Windows):
    """Local attention with a centre predicted from the query, and a Gaussian around it.

        p_t = S sigmoid(vᵀ tanh(W h_t))
        a_t(s) = softmax_s(score(h_t, h_s)) exp(-(s - p_t)² / (2 σ²))    over the keys s from p_t - D to p_t + D, σ = D / 2

    Luong, Pham and Manning 2015, section 3.2, eq. 9 and 10, https://arxiv.org/abs/1508.04025
    D is `width`, and S the length of the source without its padding. The softmax is over the window, so the weights sum to
    less than one, as in the paper, unless renormalise=True. Keys count from 0 here. The gradient reaches W and v through
    the Gaussian, since the borders of the window have none.
    Cost: time and memory O(T (2 D + 1) d), whatever the length of the source.
    """

    def __init__(self, query: int, key: int | None = None, score: Any = "bilinear", width: int = 10, **options: Any):
        super().__init__(query, key, score=score, width=width, centre=PredictedCentre(query), **options)


class PredictedCentre(nn.Module):
    """p_t = S sigmoid(vᵀ tanh(W h_t))."""

    positional: ClassVar[bool] = False
    gaussian: ClassVar[bool] = True

    def __init__(self, query: int):
        super().__init__()
        self.W = nn.Linear(query, query, bias=False)
        self.v = nn.Linear(query, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "batch queries query"], lengths: Int[Tensor, " batch"], offset: Offset
    ) -> Float[Tensor, "batch queries"]:
        place = self.v(torch.tanh(self.W(query))).squeeze(-1)
        dtype = torch.promote_types(place.dtype, torch.float32)  # half precision cannot count beyond a few hundred
        return lengths[:, None] * torch.sigmoid(place.to(dtype))
