"""ALiBi, attention with linear biases."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.scope import Offset
from regard.attention.score import compute_relative_positions, require_same_size
from regard.attention.score.scaled_dot import ScaledDot


@dataclass(frozen=True)
class Alibi:
    """Scaled dot product with a linear bias: a penalty proportional to the distance, with a slope per head.

        score(q at i, k at j) = qᵀ k / √d - m_h |i - j|,    m_h = 2^{-8 h / H}    for head h = 1, ..., H

    Press, Smith and Lewis 2022, section 3, https://arxiv.org/abs/2108.12409
    It has no parameters, and no longest sequence. H is the number of heads in use; where it is no power of two, the slopes
    are those of the power below, and then every other one of the power above, as in the authors' code. The paper's mask is
    causal; here later keys are penalised alike, which under a causal scope is the paper's. `scale` replaces 1/√d if given.
    Cost: time O(T S d), memory T S.
    """

    positional: ClassVar[bool] = True
    one_size: ClassVar[bool] = True
    scale: float | None = None

    def prepare(self, key: Float[Tensor, "batch heads keys dim"], first: int = 0) -> Float[Tensor, "batch heads keys dim"]:
        return key

    def project(
        self, query: Float[Tensor, "batch heads queries dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch heads queries dim"]:
        """q / √d."""
        return ScaledDot(self.scale).project(query)

    def __call__(
        self,
        query: Float[Tensor, "batch heads queries query"],
        prepared: Float[Tensor, "batch key_heads keys dim"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_same_size("Alibi", query.shape[-1], prepared.shape[-1])
        wide = torch.promote_types(query.dtype, torch.float32)  # half precision is inexact for large distances
        steep = torch.tensor(compute_slopes(query.shape[1]), dtype=wide, device=query.device)[:, None, None]
        far = compute_relative_positions(query.shape[2], prepared.shape[2], offset, query.device).abs()[:, None]
        return ScaledDot(self.scale)(query, prepared) - (steep * far).to(query.dtype)


def compute_slopes(heads: int) -> list[float]:
    """The slopes m_h of all heads."""
    power = 1 << (heads.bit_length() - 1)  # the largest power of two within the heads
    whole = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-4 * head / power) for head in range(1, 2 * power, 2)]
    return whole + between[: heads - power]
