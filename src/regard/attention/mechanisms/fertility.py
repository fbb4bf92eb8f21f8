"""Coverage with fertility, Tu's: the coverage of each source word is relative to its expected number of target words."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.mechanisms.coverage import Coverage
from regard.attention.types import Memory

LEAST = 0.01
"""Lower bound of Φ as a fraction of N: division by less would overflow in half precision."""


class Fertility(Coverage):
    """Coverage attention whose coverage is divided by a learned fertility of each key.

        Φ_j = N sigmoid(U_f h_j),    C_ij = Σ_{t ≤ i} a_tj / Φ_j,    e_ij = vᵀ tanh(W s_i + U h_j + w C_{i-1,j} + b)

    Tu et al. 2016, the linguistic coverage with its fertility, https://arxiv.org/abs/1601.04811
    Φ_j is the expected number of target words of key j: a key with two is half covered when it was attended once. N is
    `most`, the upper bound of Φ, 2 as in the authors' code. The state is Σ a, which starts at 0. Unlike the paper, h_j is
    the value of a key where keys and values differ, Φ is at least N / 100, and there is See's bias b.
    Cost: that of Coverage, and O(S d) for each query.
    """

    def __init__(self, query: int, key: int | None = None, value: int | None = None, *, most: float = 2.0, **options: Any):
        super().__init__(query, key, value=value, **options)
        if not 0 < most < float("inf"):
            raise ValueError(f"Fertility needs the most words that a key may become, above 0 and finite, got {most}")
        self.most = most
        self.U_f = nn.Linear(self.size, 1, bias=False)

    def fertility(self, memory: Memory) -> Float[Tensor, "batch keys"]:
        """Fertility Φ: the expected number of target words of each key."""
        fraction: Tensor = torch.sigmoid(self.U_f(memory.values[:, 0]))[..., 0]
        return self.most * fraction.clamp_min(LEAST)

    def add_coverage(self, memory: Memory, state: Float[Tensor, "batch keys"]) -> Memory:
        """The memory with the coverage in its keys, U k + w c / Φ + b."""
        return super().add_coverage(memory, state / self.fertility(memory))
