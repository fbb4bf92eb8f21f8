"""Gated convolutions, of which the convolutional encoder and decoder are built."""

from typing import TypeVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

Layer = TypeVar("Layer", nn.Linear, nn.Conv1d)

SQRT_HALF = 0.5**0.5
"""Factor that keeps the variance of a sum of two: Gehring et al. 2017, section 3.4."""


class GatedConvolution(nn.Module):
    """Gated convolution (GLU): one half of the output channels gates the other.

        y_i = A ∘ σ(B),    [A; B] = W [x_{i-k+1}; ...; x_i] + b

    Dauphin et al. 2017, https://arxiv.org/abs/1612.08083, as in Gehring et al. 2017, section 3.2,
    https://arxiv.org/abs/1705.03122
    It adds no padding: k - 1 more positions go in than come out, and the caller decides what they hold. `dropout` is that on
    its input, for the initialisation.
    """

    def __init__(self, size: int, kernel: int, dropout: float = 0.0):
        super().__init__()
        if kernel < 1:
            raise ValueError(f"a convolution needs a kernel of 1 place or more, got {kernel}")
        self.kernel = kernel
        self.convolution = initialise_layer(nn.Conv1d(size, 2 * size, kernel), 3.0, dropout)

    def forward(self, data: Float[Tensor, "rows around size"]) -> Float[Tensor, "rows time size"]:
        return F.glu(self.convolution(data.mT), dim=1).mT


def initialise_layer(layer: Layer, gain: float = 1.0, dropout: float = 0.0) -> Layer:
    """Initialise a layer so that it keeps the variance of its input.

        W ~ N(0, gain (1 - dropout) / inputs),    b = 0

    Gehring et al. 2017, section 3.5. The gain is 1, and 3 before a gate: of input with variance 1 a gate lets a third of the
    variance through. The paper has 4, since a quarter passes of input as small as its embeddings are; ours have variance 1,
    and twenty layers with a gain of 4 would raise that to 400.
    """
    nn.init.normal_(layer.weight, std=(gain * (1 - dropout) / layer.weight[0].numel()) ** 0.5)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
