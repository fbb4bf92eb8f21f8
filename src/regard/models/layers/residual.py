"""Residual connection around a sublayer of a Transformer, with its norm."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.models.layers import add_norm

Data = Float[Tensor, "rows time size"]
Mask = Bool[Tensor, "rows time"]


class Residual(nn.Module):
    """Residual connection with dropout, and a norm before the sublayer (pre-norm, RMSNorm) or after the sum (post-norm).

    pre:  x + drop(f(norm(x)))        Xiong et al. 2020, https://arxiv.org/abs/2002.04745
    post: norm(x + drop(f(x)))        Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    rms:  as pre, where norm(x) is not the layer norm but x / √(mean(x²) + ε) ∘ w: Zhang and Sennrich 2019,
          https://arxiv.org/abs/1910.07467, with the ε of T5's authors' code
    """

    added: Float[Tensor, " size"] | None = None
    """Last bias of the sublayer, which training may lend (training/mixed_precision.py): added here at no extra pass."""

    def __init__(self, size: int, norm: str = "pre", dropout: float = 0.0, epsilon: float | None = None):
        super().__init__()
        if norm not in ("pre", "post", "rms"):
            raise ValueError(f"norm needs to be 'pre', 'post' or 'rms', got {norm!r}")
        self.first = norm != "post"
        self.norm = build_norm(size, norm, epsilon)
        self.drop = nn.Dropout(dropout)

    def normalise_input(self, data: Data, keep: Mask | None = None) -> Data:
        """Input of the sublayer: normalised in pre-norm. Where it `cleans` them, rows outside `keep` are zeros."""
        if self.first and add_norm.covers(data, self.norm) is None:
            return add_norm.normalise(data, self.norm, keep)
        return self.norm(data) if self.first else data

    def add(self, data: Data, output: Data) -> Data:
        """Residual sum of the input and the sublayer's output, normalised in post-norm."""
        total = data + self.drop(output if self.added is None else output + self.added)
        return total if self.first else self.norm(total)

    def add_and_normalise(self, data: Data, output: Data, norm: nn.Module, keep: Mask | None = None) -> tuple[Data, Data]:
        """Residual sum, and its norm as the input of the next sublayer, whose pre-norm is `norm`: returns both."""
        first = norm if self.first else self.norm
        if add_norm.covers(data, first) is None:
            options = add_norm.ResidualOptions(self.drop.p if self.training else 0.0, not self.first, self.added, keep)
            return add_norm.add_and_normalise(data, output, first, options)
        data = self.add(data, output)
        return data, norm(data) if self.first else data

    def cleans(self, data: Data) -> bool:
        """Return True if the norm zeroes rows outside `keep` at no cost: where the fused kernel writes it."""
        return self.first and add_norm.covers(data, self.norm) is None


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "swish": nn.SiLU}
ACTIVATIONS["gelu_tanh"] = partial(nn.GELU, "tanh")


def build_activation(activation: str) -> nn.Module:
    """Build the activation of a feed-forward network by name."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation needs to be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    return ACTIVATIONS[activation]()


def build_norm(size: int, norm: str, epsilon: float | None = None) -> nn.Module:
    """Build the norm for a kind of residual connection; ε is `epsilon`, by default 1e-6 for rms and else 1e-5."""
    if norm == "rms":
        return nn.RMSNorm(size, eps=1e-6 if epsilon is None else epsilon)
    return nn.LayerNorm(size, eps=1e-5 if epsilon is None else epsilon)
