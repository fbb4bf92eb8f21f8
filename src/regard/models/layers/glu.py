"""Gate of a gated feed-forward network (GLU)."""

from jaxtyping import Float
from torch import Tensor, nn


class Gate(nn.Module):
    """Gated linear unit: one projection of the data, through an activation, gates another.

        f(W x) ∘ V x

    Shazeer 2020, https://arxiv.org/abs/2002.05202: GEGLU with f = GELU, SwiGLU with f = swish.
    """

    def __init__(self, size: int, inner: int, activation: nn.Module, bias: bool = True):
        super().__init__()
        self.W, self.V = nn.Linear(size, inner, bias), nn.Linear(size, inner, bias)
        self.activation = activation

    def forward(self, data: Float[Tensor, "*rows size"]) -> Float[Tensor, "*rows inner"]:
        opened: Tensor = self.activation(self.W(data)) * self.V(data)
        return opened
