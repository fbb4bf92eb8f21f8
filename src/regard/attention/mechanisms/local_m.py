"""Local attention with monotone alignment, "local-m" in Luong et al."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.local import Windows
from regard.attention.scope import Offset, Scope
from regard.attention.scope.local import Local
from regard.attention.score import build_positions


class LocalM(Windows):
    """Local attention with a window that moves along the source with the query: the t-th query attends around the t-th key.

        p_t = t,    c_t = Σ_s softmax_s(score(h_t, h_s)) h_s    over the keys s from p_t - D to p_t + D

    Luong, Pham and Manning 2015, section 3.2, https://arxiv.org/abs/1508.04025
    D is `width`, and t the position of the query, which counts from `offset`. The window is cut at the ends of the source;
    a query more than D beyond the end sees no key and its context is zero.
    Cost: time and memory O(T (2 D + 1) d), whatever the length of the source.
    """

    kernel: ClassVar[str] = "flash"

    def __init__(self, query: int, key: int | None = None, score: Any = "bilinear", width: int = 10, **options: Any):
        super().__init__(query, key, score=score, width=width, centre=MonotoneCentre(), **options)

    def window(self, centre: Float[Tensor, "batch queries"], offset: Offset) -> Scope:
        """The window scope; it depends on the position alone, so queries need no sorting by window."""
        return Local(self.width)


@dataclass(frozen=True)
class MonotoneCentre:
    """p_t = t."""

    positional: ClassVar[bool] = True
    gaussian: ClassVar[bool] = False

    def __call__(
        self, query: Float[Tensor, "batch queries query"], lengths: Int[Tensor, " batch"], offset: Offset
    ) -> Float[Tensor, "batch queries"]:
        dtype = torch.promote_types(query.dtype, torch.float32)  # half precision cannot count beyond a few hundred
        return build_positions(query.shape[1], offset, query.device).to(dtype).expand(query.shape[:2])
