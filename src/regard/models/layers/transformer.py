"""Factory of the sublayers of Transformer layers, for encoder and decoder."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from regard.attention.multihead import MultiHead
from regard.models.attention_factory import build_self_attention
from regard.models.layers.feedforward import FeedForward, Gate
from regard.models.layers.residual import Residual, build_activation, build_norm
from regard.models.lr_scale import scale_learning_rate


@dataclass(frozen=True)
class Sublayers:
    """Settings of a Transformer layer, and builders of its self-attention, residual connections and feed-forward network."""

    size: int
    heads: int = 4
    inner: int | None = None
    """Inner size of the feed-forward network; None: four times `size`."""
    activation: str = "relu"
    gated: bool = False
    bias: bool = True
    """True if linear layers have a bias."""
    self_attention: str = "scaled_dot"
    width: int | None = None
    """Size that self-attention projects to; None: `size`."""
    norm: str = "pre"
    drop_residual: float = 0.0
    drop_attention: float = 0.0
    epsilon: float | None = None
    """Epsilon of the norms; None: the default."""

    def build_self_attention(self, scope: str = "everywhere") -> MultiHead:
        """Build the self-attention."""
        options: dict[str, Any] = {"dropout": self.drop_attention, "size": self.width, "bias": self.bias}
        return scale_learning_rate(build_self_attention(self.self_attention, self.size, self.heads, scope=scope, **options))

    def build_residual(self) -> Residual:
        """Build a residual connection."""
        return Residual(self.size, self.norm, self.drop_residual, self.epsilon)

    def build_final_norm(self) -> nn.Module:
        """Build the final norm of a pre-norm stack; identity in post-norm."""
        return nn.Identity() if self.norm == "post" else build_norm(self.size, self.norm, self.epsilon)

    def build_feedforward(self) -> FeedForward:
        """Build the feed-forward network, with ReLU unless another `activation` is named; `gated`, W₁ and f are a Gate."""
        inner = self.inner or 4 * self.size
        last = nn.Linear(inner, self.size, self.bias)
        if self.gated:
            return FeedForward(Gate(self.size, inner, build_activation(self.activation), self.bias), last)
        return FeedForward(nn.Linear(self.size, inner, self.bias), build_activation(self.activation), last)
