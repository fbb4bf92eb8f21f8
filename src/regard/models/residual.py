"""The way around a sublayer of a Transformer."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

Data = Float[Tensor, "rows time size"]


class Residual(nn.Module):
    """Add what a sublayer finds to what went into it, with a norm before the sublayer or after the sum.

    pre:  x + drop(f(norm(x)))        Xiong et al. 2020, https://arxiv.org/abs/2002.04745
    post: norm(x + drop(f(x)))        Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    rms:  as pre, where norm(x) is not the layer norm but x / √(mean(x²) + ε) ∘ w: Zhang and Sennrich 2019,
          https://arxiv.org/abs/1910.07467, with the ε of T5's authors' code
    """

    def __init__(self, size: int, norm: str = "pre", dropout: float = 0.0):
        super().__init__()
        if norm not in ("pre", "post", "rms"):
            raise ValueError(f"norm needs to be 'pre', 'post' or 'rms', got {norm!r}")
        self.first = norm != "post"
        self.norm = norm_of(size, norm)
        self.drop = nn.Dropout(dropout)

    def enter(self, data: Data) -> Data:
        """What the sublayer gets."""
        return self.norm(data) if self.first else data

    def leave(self, data: Data, found: Data) -> Data:
        """What goes on, from what went in and what the sublayer found."""
        total = data + self.drop(found)
        return total if self.first else self.norm(total)


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "swish": nn.SiLU}
ACTIVATIONS["gelu_tanh"] = partial(nn.GELU, "tanh")


def bend(activation: str) -> nn.Module:
    """What bends the middle of a feed-forward network."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation needs to be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    return ACTIVATIONS[activation]()


def norm_of(size: int, norm: str) -> nn.Module:
    """The norm that stands at a place called `norm`."""
    return nn.RMSNorm(size, eps=1e-6) if norm == "rms" else nn.LayerNorm(size)
