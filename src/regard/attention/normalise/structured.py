"""Structured attention: a linear-chain CRF over the keys selects segments."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.first_derivative import refuse_second_derivative
from regard.attention.normalise import Allowed, Scores, silence, widen
from regard.attention.scan import recur, scan, shift

Directions = Float[Tensor, "2 batch heads queries keys"]
Mask = Bool[Tensor, "2 batch heads queries keys"]
Theta = Float[Tensor, "2 2 2 1 #heads 1 1"]
"""θ[i, j] for both directions: from the first key to the last, and from the last to the first."""


class Structured(nn.Module):
    """Marginals of a linear-chain CRF in which each key is selected or not, with a transition score between neighbours.

        p(z) ∝ exp(Σ_k s_k z_k + Σ_k θ[z_k, z_k+1]),  z_k ∈ {0, 1};    a_k = p(z_k = 1)

    Kim, Denton, Hoang and Rush 2017, section 3.1, https://arxiv.org/abs/1702.00887
    θ is learned, one for each head; where it is zero this is Sigmoid. A masked key is no part of the chain: the keys on its
    two sides are neighbours. Weights need not sum to one.
    Unlike the paper, the backward is not written out: messages are solved for without a gradient, and one Newton step under
    autograd gives them the gradient of the implicit function. There is no second derivative.
    Cost: time O(T S log S) in log S steps, memory T S.
    """

    sums_to_one: ClassVar[bool] = False

    def __init__(self, heads: int = 1):
        super().__init__()
        self.transition = nn.Parameter(torch.empty(heads, 2, 2))
        nn.init.uniform_(self.transition, -1.0, 1.0)

    def forward(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        wide = widen(scores)
        visible = torch.ones_like(wide, dtype=torch.bool) if allowed is None else allowed.expand_as(wide)
        wide = refuse_second_derivative(wide.masked_fill(~visible, 0.0), "Structured")
        theta = refuse_second_derivative(torch.stack((self.transition, self.transition.mT)), "Structured").to(
            wide.dtype
        )  # directions heads 2 2
        theta = theta.movedim((2, 3), (0, 1))[:, :, :, None, :, None, None]
        left, right = compute_messages(stack_directions(wide), stack_directions(visible), theta)
        return silence(torch.sigmoid(left + wide + right.flip(-1)), allowed).to(scores.dtype)

    def extra_repr(self) -> str:
        return f"heads={len(self.transition)}"


def stack_directions(data: Tensor) -> Tensor:
    """Stack the data in both directions, as it is and from the last key to the first."""
    return torch.stack((data, data.flip(-1)))


def compute_messages(scores: Directions, visible: Mask, theta: Theta) -> Directions:
    """Messages to each key from those before it: the log-odds that it is selected.

        m_k = f(r_{k-1}),    r_k = s_k + m_k,    f(r) = log((e^θ01 + e^(θ11 + r)) / (e^θ00 + e^(θ10 + r)))

    with m = 0 for the first key of the chain. The r that solve this are computed first. f is then linearised around them,
    which changes no value, and leaves a linear recurrence to autograd.
    """
    begun = visible.cumsum(-1) - visible.long() > 0
    (out, into), (leave, stay) = theta
    operator = torch.compiler.is_compiling() and not torch.compiler.is_exporting()
    with torch.no_grad():
        r = (multiply_operator if operator else solve_chain)(scores, visible, begun, theta)
        r = shift(r).masked_fill(~begun, 0.0)
        slope = torch.sigmoid(stay + r - into) - torch.sigmoid(leave + r - out)
        slope = slope.masked_fill(~begun, 0.0)
    high, low = r.clamp_min(0), r.clamp_max(0)  # the common part of both logarithms would cost precision
    f = torch.logaddexp(into - high, stay + low) - torch.logaddexp(out - high, leave + low)
    f = f.masked_fill(~begun, 0.0)
    solution = recur(slope.masked_fill(~visible, 1.0), (scores + f - slope * r).masked_fill(~visible, 0.0))
    return f + slope * (shift(solution) - r)


def solve_chain(scores: Tensor, visible: Tensor, begun: Tensor, theta: Tensor) -> Tensor:
    """Solve for every r of `compute_messages`, by matrix products in the log domain.

        M_k = [[e^θ00, e^(θ01 + s_k)], [e^θ10, e^(θ11 + s_k)]]

    without θ for the first key of the chain, and the identity for a key outside it.
    """
    one = torch.eye(2, dtype=scores.dtype, device=scores.device)[(...,) + (None,) * scores.ndim]
    links = torch.where(begun, theta, 0.0) + one[1:] * scores  # in the column of selected keys
    matrices = torch.where(visible, links, one.log())
    products = scan(lambda left, right: (log_matmul(left[0], right[0]),), (matrices,))[0]
    return products[0, 1].clone()


# A custom operator, opaque to torch.compile, which would unroll it for every length.
multiply_operator = torch.library.custom_op("regard::structured_solve", solve_chain, mutates_args=())
multiply_operator.register_fake(
    lambda scores, visible, begun, theta: torch.empty_like(scores, memory_format=torch.contiguous_format)
)


def log_matmul(left: Float[Tensor, "2 2 *rows"], right: Float[Tensor, "2 2 *rows"]) -> Float[Tensor, "2 2 *rows"]:
    """Matrix product in the log domain, less its first entry: only differences of entries matter."""
    product = torch.logaddexp(left[:, :1] + right[:1], left[:, 1:] + right[1:])
    return product - product[:1, :1]
