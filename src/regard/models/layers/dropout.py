"""Dropout for sequences: a mask for each step, or one for all of them (variational)."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class Drop(nn.Module):
    """Dropout; `variational` drops the same dimensions at every step of a sequence.

        y_t = m ∘ x_t / (1 - p),   m ~ Bernoulli(1 - p) once per sequence

    Gal and Ghahramani 2016, section 4, https://arxiv.org/abs/1512.05287
    Unlike the paper, the mask applies to the input of a layer and not to its recurrent connections, so that a layer still
    runs as one fused call.
    """

    def __init__(self, probability: float = 0.0, variational: bool = False):
        super().__init__()
        if not 0 <= probability < 1:
            raise ValueError(f"dropout needs a probability from 0 to below 1, got {probability}")
        self.probability, self.variational = probability, variational

    def draw(self, like: Float[Tensor, "rows ..."], size: int) -> Float[Tensor, "rows size"] | None:
        """Sample the mask of a whole sequence; None where each step has its own or nothing is dropped."""
        if not (self.training and self.variational and self.probability):
            return None
        return F.dropout(like.new_ones(like.shape[0], size), self.probability)

    def forward(
        self, data: Float[Tensor, "rows time size"], mask: Float[Tensor, "rows size"] | None = None
    ) -> Float[Tensor, "rows time size"]:
        mask = self.draw(data, data.shape[-1]) if mask is None else mask
        return F.dropout(data, self.probability, self.training) if mask is None else data * mask[:, None]

    def extra_repr(self) -> str:
        return f"{self.probability}, variational={self.variational}"
