"""The way around a sublayer of a Transformer."""

from jaxtyping import Float
from torch import Tensor, nn

Data = Float[Tensor, "rows time size"]


class Residual(nn.Module):
    """Add what a sublayer finds to what went into it, with a norm before the sublayer or after the sum.

    pre:  x + drop(f(norm(x)))        Xiong et al. 2020, https://arxiv.org/abs/2002.04745
    post: norm(x + drop(f(x)))        Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    """

    def __init__(self, size: int, norm: str = "pre", dropout: float = 0.0):
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f"norm needs to be 'pre' or 'post', got {norm!r}")
        self.first = norm == "pre"
        self.norm = nn.LayerNorm(size)
        self.drop = nn.Dropout(dropout)

    def enter(self, data: Data) -> Data:
        """What the sublayer gets."""
        return self.norm(data) if self.first else data

    def leave(self, data: Data, found: Data) -> Data:
        """What goes on, from what went in and what the sublayer found."""
        total = data + self.drop(found)
        return total if self.first else self.norm(total)


def feedforward(size: int, inner: int) -> nn.Sequential:
    """W₂ max(0, W₁ x): Vaswani et al. 2017, section 3.3."""
    return nn.Sequential(nn.Linear(size, inner), nn.ReLU(), nn.Linear(inner, size))
