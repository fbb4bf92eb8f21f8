"""Dynamic convolution attention, Battenberg's: filters over the previous weights, some of them predicted by the query."""

import math
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.mechanisms._coverage import CoverageBase
from regard.attention.mechanisms.forward import start_alignment
from regard.attention.normalise import widen
from regard.attention.types import Memory

FLOOR = 1e-6
"""Smallest prior: a key that the prior does not reach loses log(1e-6) = -13.8 of its score."""


class ConvolvedAlignment(nn.Module):
    """Score of a key by the previous weights around it, through static and dynamic filters and a prior filter.

    score(q, j) = vᵀ tanh(U f_j + T g_j + b) + log max(Σ_k P_k a_{j-k}, 1e-6),    f = F * a,    g = G(q) * a,
    G(q) = V_G tanh(W_G q + b_G)

    The key's side of the score is the window of previous weights around each key, which `open_windows` cuts.
    """

    positional: ClassVar[bool] = False
    prior: Float[Tensor, " length"]

    def __init__(self, query: int, hidden: int, filters: int, kernel: int, prior: Float[Tensor, " length"]):
        super().__init__()
        self.filters, self.kernel = filters, kernel
        self.left, self.right = max(kernel // 2, len(prior) - 1), kernel // 2
        self.register_buffer("prior", prior, persistent=False)
        self.F = nn.Linear(kernel, filters, bias=False)
        self.W = nn.Linear(query, hidden)
        self.G = nn.Linear(hidden, filters * kernel, bias=False)
        self.U = nn.Linear(filters, hidden, bias=False)
        self.T = nn.Linear(filters, hidden)
        self.v = nn.Linear(hidden, 1, bias=False)

    def prepare(self, key: Float[Tensor, "batch heads keys key"]) -> Float[Tensor, "batch 1 keys taps"]:
        """The windows before the first query, whose alignment is the first key."""
        first = torch.arange(key.shape[2], device=key.device) == 0
        return self.open_windows(first.to(key.dtype).expand(key.shape[0], -1))

    def open_windows(self, alignment: Float[Tensor, "batch keys"]) -> Float[Tensor, "batch 1 keys taps"]:
        """The weights from `left` keys before each key to `right` keys after it."""
        padded = F.pad(alignment, (self.left, self.right + 1))  # one more, since an empty source has no window otherwise
        return padded.unfold(-1, self.left + self.right + 1, 1)[:, None, :-1]

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch heads keys taps"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        middle = slice(self.left - self.kernel // 2, self.left + self.kernel // 2 + 1)
        near = prepared[..., middle].to(query.dtype)
        static = self.U(self.F(near))  # batch heads keys hidden
        filters = self.G(torch.tanh(self.W(query))).unflatten(-1, (self.filters, self.kernel))
        dynamic = self.T(near[:, :, None] @ filters.mT)  # batch heads queries keys hidden
        scores = self.v(torch.tanh(static[:, :, None] + dynamic)).squeeze(-1)
        return scores + self.compute_prior(prepared)[:, :, None].to(scores.dtype)

    def compute_prior(self, prepared: Float[Tensor, "batch heads keys taps"]) -> Float[Tensor, "batch heads keys"]:
        """log of the previous weights as the prior filter moves them on, at least log 1e-6."""
        past = widen(prepared)[..., self.left + 1 - len(self.prior) : self.left + 1]
        return (past @ self.prior.flip(0).to(past.dtype)).clamp_min(FLOOR).log()


class DynamicConvolution(CoverageBase):
    """Attention by convolutions of the previous weights alone: static filters, filters that the query predicts, and a prior.

        e_ij = vᵀ tanh(U f_ij + T g_ij + b) + p_ij,    a_i = softmax(e_i),    a_0 = one_hot(first key)
        f_i = F * a_{i-1},    g_i = G(s_i) * a_{i-1},    G(s_i) = V_G tanh(W_G s_i + b_G),    p_i = log(P * a_{i-1})

    Battenberg et al. 2020, https://arxiv.org/abs/1910.10288
    F and G hold `filters` filters of `kernel` keys each. P moves weights on by 0 to `prior_length` - 1 keys with the
    probabilities of a beta-binomial distribution of `alpha` and `beta`, by default one key on average. P * a is at least
    1e-6. `hidden` is the size of both hidden layers, by default that of the query. No key is compared: only the
    weights before decide how to move, so that any length can be read. The state is a_{i-1}.
    Cost: time and memory O(S (kernel + hidden)) for each query, one query after the other.
    """

    def __init__(
        self,
        query: int,
        key: int | None = None,
        *,
        filters: int = 8,
        kernel: int = 21,
        prior_length: int = 11,
        alpha: float = 0.1,
        beta: float = 0.9,
        hidden: int | None = None,
        **options: Any,
    ):
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"DynamicConvolution needs an odd kernel, which has a middle, got {kernel}")
        if prior_length < 1 or alpha <= 0 or beta <= 0:
            raise ValueError(
                "DynamicConvolution needs a prior_length of 1 or more and an alpha and beta above 0, "
                f"got {prior_length}, {alpha} and {beta}"
            )
        size = options.get("size") or query
        prior = torch.tensor(beta_binomial(prior_length - 1, alpha, beta))
        super().__init__(query, key, score=ConvolvedAlignment(size, hidden or size, filters, kernel, prior), **options)
        self.key = nn.Identity()  # no key is compared

    def start(self, memory: Memory) -> Float[Tensor, "batch keys"]:
        """The alignment before the first query: the first key that is not padding."""
        return start_alignment(memory)

    def add_coverage(self, memory: Memory, state: Float[Tensor, "batch keys"]) -> Memory:
        """The memory with the previous weights around each key in place of the keys."""
        return memory._replace(keys=self.score.open_windows(state))

    def update(
        self, state: Float[Tensor, "batch keys"], weights: Float[Tensor, "batch keys"]
    ) -> Float[Tensor, "batch keys"]:
        """The weights of this step."""
        return weights


def beta_binomial(count: int, alpha: float, beta: float) -> list[float]:
    """Probabilities of 0 to `count` successes of a beta-binomial distribution."""

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    return [
        math.comb(count, k) * math.exp(log_beta(k + alpha, count - k + beta) - log_beta(alpha, beta))
        for k in range(count + 1)
    ]
