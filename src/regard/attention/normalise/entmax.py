"""Entmax: sparse softmax with a parameter alpha between softmax and sparsemax."""

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.attention.first_derivative import refuse_second_derivative
from regard.attention.normalise import Allowed, Scores, silence, visible, widen
from regard.attention.scan import DOUBLINGS, count_doublings

STEPS, STEEP_STEPS = 12, 9
"""Newton steps up to α = 2, where 1,000 scores that fall by constant differences take nine, and beyond."""


class Entmax(nn.Module):
    """Weights whose sparsity is set by alpha: softmax towards 1, sparsemax at 2, usually 1.5.

        a_k = max(0, (α-1) s_k - τ)^(1/(α-1)),  τ such that Σ a = 1

    Peters, Niculae and Martins 2019, algorithm 1, https://arxiv.org/abs/1905.05702
    With learn=True each head learns its own α = 1 + sigmoid(raw), between the two ends: Correia, Niculae and Martins 2019,
    https://arxiv.org/abs/1909.00015
    Unlike the papers, the backward is not written out: the threshold is solved for without a gradient, by a sort (α = 1.5,
    algorithm 2) or by Newton's method in place of bisection, and one Newton step under autograd gives it the gradient of the
    implicit function, for the scores and for α. There is no second derivative.
    Float32 has the weights of float64 to 3e-7 for every α from 1.0001 to 10: up to 2 the unknown is 1 / Σ a of weights
    relative to the largest, and beyond 2, where the power is so steep that no τ in float32 gives a sum of one, the smallest
    positive weight.
    Cost: time O(T S log S) at α = 1.5 and beyond 2, else O(T S) times 12 Newton steps; memory T S.
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
        return self.fixed if self.raw is None else refuse_second_derivative(1 + self.raw.sigmoid(), "Entmax")[:, None, None]

    def forward(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        if scores.shape[-1] == 0:  # no keys, no maximum
            return scores
        wide, alpha = widen(scores), self.alpha
        keep = torch.ones_like(wide, dtype=torch.bool) if allowed is None else visible(allowed)
        best = wide.detach().masked_fill(~keep, -torch.inf).amax(-1, keepdim=True)
        shifted = refuse_second_derivative(wide - best, "Entmax")
        raised = ((alpha - 1) * shifted).masked_fill(~keep, -torch.inf)
        if isinstance(alpha, Tensor) or (alpha <= 2 and alpha != 1.5):
            weights = _compute_by_total(raised, alpha)
        elif alpha == 1.5:
            weights = _compute_by_sort(raised)
        else:
            weights = _compute_by_smallest(raised, alpha)
        return silence(weights, allowed).to(scores.dtype)

    def extra_repr(self) -> str:
        return f"alpha={self.fixed}, learn={self.raw is not None}"


def _compute_by_sort(raised: Tensor) -> Tensor:
    """Weights at α = 1.5 by a sort: Σ (s - τ)² = 1 is a quadratic equation for each size of the support."""
    with torch.no_grad():
        ordered = raised.sort(dim=-1, descending=True).values.clamp_min(-2)  # nothing below -1 has a weight
        size = torch.arange(1, raised.shape[-1] + 1, device=raised.device, dtype=raised.dtype)
        mean, square = ordered.cumsum(-1) / size, ordered.square().cumsum(-1) / size
        candidates = mean - ((1 / size) - (square - mean.square())).clamp_min(0).sqrt()
        support = (candidates <= ordered).sum(-1, keepdim=True).clamp_min(1)  # none is NaN's
        tau = candidates.gather(-1, support - 1)
    base = _subtract_positive(raised, tau)
    tau = tau + (base.square().sum(-1, keepdim=True) - 1) / (2 * base.detach().sum(-1, keepdim=True))
    return _subtract_positive(raised, tau).square()


def _subtract_positive(raised: Tensor, tau: Tensor) -> Tensor:
    """max(0, raised - τ), and NaN where τ is NaN."""
    return torch.where(raised <= tau, 0.0, raised - tau)


def _compute_by_total(raised: Tensor, alpha: float | Tensor) -> Tensor:
    """Weights for α up to 2, relative to the largest, and then divided by their sum.

        e_k = (1 + r_k / y)^p,    a_k = e_k / Σ e,    p = 1 / (α-1),    y = -τ = (Σ e)^(1-α)

    r are the raised scores, 0 of the largest. The norm y (Σ e)^(1/p) is convex in y, and from y = 1 on Newton's steps
    decrease to the y where it is 1. The logarithm of e is exact where p is large and r / y small.
    """
    power = 1 / (alpha - 1)
    with torch.no_grad():
        scale = torch.ones_like(raised[..., :1])
        for _ in range(STEPS):
            scale = _step_scale(raised, scale, power)
    weights = _relate_to_largest(raised, _step_scale(raised, scale, power), power)[0]
    return weights / weights.sum(-1, keepdim=True)


def _step_scale(raised: Tensor, scale: Tensor, power: float | Tensor) -> Tensor:
    """Newton step of y; its gradient is that of the y where the weights sum to one."""
    weights, base = _relate_to_largest(raised, scale, power)
    total, slope = weights.sum(-1, keepdim=True), (weights / base).sum(-1, keepdim=True)
    return scale - (scale * total - total ** (1 - 1 / power)) / slope.detach()


def _relate_to_largest(raised: Tensor, scale: Tensor, power: float | Tensor) -> tuple[Tensor, Tensor]:
    """e_k, and 1 + r_k / y; 0 and 1 outside the support."""
    support = raised > -scale
    ratio = torch.where(support, raised, 0.0) / scale
    return torch.where(support, torch.exp(power * torch.log1p(ratio)), 0.0), 1 + ratio


def _compute_by_smallest(raised: Tensor, alpha: float) -> Tensor:
    """Weights for α beyond 2, from the smallest positive one, z.

        a_k = ((r_k - r_z) + z^(α-1))^(1/(α-1))

    Differences of scores are exact where the weights are steepest, at the edge of the support, where τ itself would be
    rounded. Each weight is convex in z, a norm of two numbers, so that from above, z = 1 / size of the support, Newton's
    steps decrease to the z where the weights sum to one.
    """
    with torch.no_grad():
        ordered, order = raised.sort(dim=-1, descending=True)
        key = order.gather(-1, _count_larger_weights(ordered, 1 / (alpha - 1)))
        smallest_key = torch.arange(raised.shape[-1], device=raised.device) == key
    gap = raised - raised.gather(-1, key)
    support = gap >= 0
    gap = torch.where(support, gap, 1.0)
    with torch.no_grad():
        mask, smallest = support.to(gap.dtype), 1 / support.sum(-1, keepdim=True).to(gap.dtype)
        for _ in range(STEEP_STEPS):
            total, slope = _sum_weights(gap, mask, smallest, alpha)
            smallest = smallest - (total - 1) / slope
        slope = _sum_weights(gap, mask, smallest, alpha)[1]
    raise_gaps = partial(_raise_gaps, gap, support, smallest_key, alpha)
    weights = raise_gaps(smallest - (raise_gaps(smallest).sum(-1, keepdim=True) - 1) / slope)
    return weights / weights.sum(-1, keepdim=True)


def _count_larger_weights(ordered: Tensor, power: float) -> Tensor:
    """The number of weights above the smallest positive one, by binary search: with τ at their scores the sum is below 1."""
    keys = ordered.shape[-1]
    low = torch.zeros_like(ordered[..., :1], dtype=torch.long)
    high = torch.full_like(low, keys)
    for _ in range(DOUBLINGS if torch.compiler.is_compiling() else count_doublings(keys)):
        middle = (low + high) // 2
        above = (ordered - ordered.gather(-1, middle.clamp_max(keys - 1))).clamp_min(0) ** power
        positive = (above.sum(-1, keepdim=True) < 1) & (middle < high)
        low, high = torch.where(positive, middle, low), torch.where(positive, high, middle)
    return low


def _sum_weights(gap: Tensor, mask: Tensor, smallest: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """The sum of the weights for a z, and its derivative Σ (z / a_k)^(α-2)."""
    base = (gap + smallest ** (alpha - 1)).clamp_min(torch.finfo(gap.dtype).tiny)
    weights = base ** (1 / (alpha - 1)) * mask
    return weights.sum(-1, keepdim=True), (weights / base).sum(-1, keepdim=True) * smallest ** (alpha - 2)


def _raise_gaps(gap: Tensor, support: Tensor, smallest_key: Tensor, alpha: float, smallest: Tensor) -> Tensor:
    """The weights for a z, which is that of its own key without a power, whose gradient might overflow."""
    power = support & ~smallest_key
    base = torch.where(power, gap + smallest ** (alpha - 1), 1.0).clamp_min(torch.finfo(gap.dtype).tiny)
    return torch.where(smallest_key, smallest, torch.where(power, base ** (1 / (alpha - 1)), 0.0))
