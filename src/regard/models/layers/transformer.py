"""Sublayers: what the layers of a Transformer are made of, alike in both halves."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from regard.attention.multihead import MultiHead
from regard.models.attention_factory import self_attention
from regard.models.layers.feedforward import FeedForward
from regard.models.layers.glu import Gate
from regard.models.layers.residual import Residual, bend, norm_of
from regard.models.lr_scale import steady


@dataclass(frozen=True)
class Sublayers:
    """How a layer looks at itself, thinks, and goes around both."""

    size: int
    heads: int = 4
    inner: int | None = None
    """The size of the middle of a feed-forward network; None: four times `size`."""
    activation: str = "relu"
    gated: bool = False
    bias: bool = True
    """Whether matrices have a vector that is added."""
    looks: str = "scaled_dot"
    width: int | None = None
    """What self-attention projects to; None: `size`."""
    norm: str = "pre"
    drop_residual: float = 0.0
    drop_attention: float = 0.0
    epsilon: float | None = None
    """What norms add to a variance; None: the usual."""

    def look(self, scope: str = "everywhere") -> MultiHead:
        """Self-attention."""
        options: dict[str, Any] = {"dropout": self.drop_attention, "size": self.width, "bias": self.bias}
        return steady(self_attention(self.looks, self.size, self.heads, scope=scope, **options))

    def around(self) -> Residual:
        """The way around a sublayer."""
        return Residual(self.size, self.norm, self.drop_residual, self.epsilon)

    def last(self) -> nn.Module:
        """What follows the last layer: one more norm, where norms come first."""
        return nn.Identity() if self.norm == "post" else norm_of(self.size, self.norm, self.epsilon)

    def think(self) -> FeedForward:
        """A feed-forward network whose f is max(0, x) unless another `activation` is named; `gated`, W₁ and f are a Gate."""
        inner = self.inner or 4 * self.size
        last = nn.Linear(inner, self.size, self.bias)
        if self.gated:
            return FeedForward(Gate(self.size, inner, bend(self.activation), self.bias), last)
        return FeedForward(nn.Linear(self.size, inner, self.bias), bend(self.activation), last)
