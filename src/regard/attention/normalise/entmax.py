"""Entmax: sparse softmax with a parameter alpha between softmax and sparsemax."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.attention.normalise import Allowed, Scores, silence, visible, widen


class Entmax(nn.Module):
    """Weights whose sparsity is set by alpha: softmax towards 1, sparsemax at 2, usually 1.5.

        a_k = max(0, (α-1) s_k - τ)^(1/(α-1)),  τ such that Σ a = 1

    Peters, Niculae and Martins 2019, algorithm 1, https://arxiv.org/abs/1905.05702
    With learn=True each head learns its own α = 1 + sigmoid(raw), between the two ends: Correia, Niculae and Martins 2019,
    https://arxiv.org/abs/1909.00015
    Unlike the papers, the backward is not written out: τ is found without a gradient, by bisection or (α = 1.5, algorithm 2)
    by a sort, and one Newton step under autograd gives it the gradient of the implicit function, for the scores and for α.
    Cost: time O(T S log S) at α = 1.5, else O(T S) times 28 bisections in float32; memory T S.
    """

    sums_to_one: ClassVar[bool] = True

    def __init__(self, alpha: float = 1.5, learn: bool = False, heads: int = 1):
        super().__init__()
        if alpha <= 1:
            raise ValueError(f"Entmax needs alpha above 1, got {alpha}; alpha 1 is Softmax")
        if learn and alpha >= 2:
            raise ValueError(f"Entmax learns alpha between 1 and 2, got {alpha} to start from; 1.5 is in the middle")
        self.fixed = alpha
        self.raw = nn.Parameter(torch.full((heads,), alpha - 1).logit()) if learn else None

    @property
    def alpha(self) -> float | Tensor:
        """Alpha: one number, or one for each head when it is learned."""
        return self.fixed if self.raw is None else 1 + self.raw.sigmoid()[:, None, None]

    def forward(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        if scores.shape[-1] == 0:  # no keys, no maximum
            return scores
        wide = widen(scores)
        alpha = self.alpha
        keep = torch.ones_like(wide, dtype=torch.bool) if allowed is None else visible(allowed)
        best = wide.detach().masked_fill(~keep, -torch.inf).amax(-1, keepdim=True)
        raised = (alpha - 1) * (wide - best).masked_fill(~keep, 0.0)
        search = _find_threshold_by_sort if self.raw is None and alpha == 1.5 else _find_threshold_by_bisection
        tau = search(raised.detach(), keep, _detach_alpha(alpha))
        excess = _compute_weights(raised, keep, tau, 1 / (alpha - 1)).sum(-1, keepdim=True) - 1
        slope = _compute_weights(raised.detach(), keep, tau, (2 - _detach_alpha(alpha)) / (_detach_alpha(alpha) - 1)).sum(
            -1, keepdim=True
        )
        tau = tau + excess * (_detach_alpha(alpha) - 1) / slope
        return silence(_compute_weights(raised, keep, tau, 1 / (alpha - 1)), allowed).to(scores.dtype)

    def extra_repr(self) -> str:
        return f"alpha={self.fixed}, learn={self.raw is not None}"


def _compute_weights(raised: Tensor, keep: Tensor, tau: Tensor, power: float | Tensor) -> Tensor:
    """Weights max(0, raised - tau)^power of the allowed keys, with a finite gradient at the edge of the support."""
    base = raised - tau
    support = (base > 0) & keep
    return torch.where(support, torch.where(support, base, 1.0) ** power, 0.0)


def _find_threshold_by_sort(raised: Tensor, keep: Tensor, alpha: float | Tensor) -> Tensor:
    """Threshold by sorting for α = 1.5: Σ (s - τ)² = 1 is a quadratic equation for each size of the support."""
    ordered = raised.masked_fill(~keep, -torch.inf).sort(dim=-1, descending=True).values
    size = torch.arange(1, raised.shape[-1] + 1, device=raised.device, dtype=raised.dtype)
    mean, square = ordered.cumsum(-1) / size, ordered.square().cumsum(-1) / size
    candidates = mean - ((1 / size) - (square - mean.square())).clamp_min(0).sqrt()
    support = (candidates <= ordered).sum(-1, keepdim=True)
    return candidates.gather(-1, support - 1)


def _find_threshold_by_bisection(raised: Tensor, keep: Tensor, alpha: float | Tensor) -> Tensor:
    """Threshold by bisection: the weights sum to one at most 1 below the largest raised score, which is 0."""
    low = torch.full_like(raised[..., :1], -1.0)
    width = 1.0
    for _ in range(56 if raised.dtype == torch.float64 else 28):
        width /= 2
        above = _compute_weights(raised, keep, low + width, 1 / (alpha - 1)).sum(-1, keepdim=True) >= 1
        low = torch.where(above, low + width, low)
    return low


def _detach_alpha(alpha: float | Tensor) -> float | Tensor:
    return alpha.detach() if isinstance(alpha, Tensor) else alpha
