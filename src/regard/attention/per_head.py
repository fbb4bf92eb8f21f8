"""Linear map with one weight matrix per head."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class PerHead(nn.Module):
    """Linear map y_h = W_h x_h, with one matrix per head, or one for all with heads=1.

    The input has fewer heads than there are matrices when keys are shared by groups of query heads: each input head then
    serves `heads / input heads` neighbouring matrices. W is initialised uniformly `within` that bound, 1/√size by default.
    """

    def __init__(self, size: int, out: int, heads: int = 1, within: float | None = None):
        super().__init__()
        within = 1 / math.sqrt(size) if within is None else within
        self.weight = nn.Parameter(torch.empty(heads, out, size))
        nn.init.uniform_(self.weight, -within, within)

    def forward(self, data: Float[Tensor, "batch in_heads time size"]) -> Float[Tensor, "batch out_heads time out"]:
        return project_heads(data, self.weight)

    def extra_repr(self) -> str:
        heads, out, size = self.weight.shape
        return f"{size}, {out}, heads={heads}"


def project_heads(
    data: Float[Tensor, "batch in_heads time size"], weight: Float[Tensor, "heads out size"]
) -> Float[Tensor, "batch out_heads time out"]:
    """Compute W_h x_h of every head, as one product for each matrix: a plain `@` would copy the matrices for every row."""
    if len(weight) == 1:
        return F.linear(data, weight.squeeze(0))  # not [0], whose backward is zeros and a copy into them
    return torch.einsum("bhti,hoi->bhto", repeat_heads(data, len(weight)).expand(-1, len(weight), -1, -1), weight)


def repeat_heads(data: Float[Tensor, "batch groups time size"], heads: int) -> Float[Tensor, "batch heads time size"]:
    """Repeat each key head for the query heads of its group; one head, or all `heads`, are returned unchanged."""
    groups = data.shape[1]
    if heads in (1, groups) or groups == 1:
        return data
    if heads % groups:
        raise ValueError(f"{heads} heads cannot share {groups} key heads evenly; choose a divisor of {heads}")
    return data.repeat_interleave(heads // groups, dim=1)
