"""Convolutional encoder of token sequences."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard import registry
from regard.attention.positions import Positions
from regard.attention.types import Encoded
from regard.data.batch import Padded
from regard.models.encoders import unpack_source
from regard.models.layers.embedding import Embedding
from regard.models.layers.gated_convolution import SQRT_HALF, GatedConvolution, initialise_layer


class Convolution(nn.Module):
    """Convolutional encoder: layers of gated convolutions with residual connections.

        x = E[s] √d + PE,   h⁰ = W x,   hˡ = (gated(hˡ⁻¹) + hˡ⁻¹) √½,   z = W' hᴺ

    Gehring et al. 2017, section 3, https://arxiv.org/abs/1705.03122
    Keys are z, values (z + x) √½: the token in its context, and the token itself. Both are as wide as the embedding, and so
    is the output `size`. The receptive field grows by (kernel - 1) / 2 positions to each side with every layer. Padding is
    set to zero before each convolution, so that it looks like the end. Unlike the paper: the embedding is scaled, as the
    Transformer's is, there is no weight normalisation, and the encoder's gradient is not divided by the number of
    attentions, which Adam would undo. The final state is the mean of z.
    """

    def __init__(
        self,
        vocabulary: int,
        size: int,
        *,
        embedding: int | None = None,
        layers: int = 1,
        kernel: int = 3,
        positions: Positions | str | None = "sinusoidal",
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
    ):
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(
                f"a convolutional encoder needs an odd kernel, as many places to each side, got {kernel}; "
                f"choose {kernel + 1}"
            )
        embedding = embedding or size
        placed = registry.build(positions, "positions", size=embedding)
        self.embedding = Embedding(vocabulary, embedding, scaled=True, positions=placed, dropout=drop_embedding)
        self.size = self.embedding.size
        self.widen = initialise_layer(nn.Linear(self.size, size), dropout=drop_embedding)
        self.layers = nn.ModuleList(GatedConvolution(size, kernel, drop_residual) for _ in range(layers))
        self.narrow = initialise_layer(nn.Linear(size, self.size))
        self.drop = nn.Dropout(drop_residual)
        self.side = kernel // 2

    def forward(self, source: Padded) -> Encoded:
        tokens, keep = unpack_source(source, "convolution")
        hidden = ~keep[..., None]
        embedded = self.embedding(tokens).masked_fill(hidden, 0.0)
        data = self.widen(embedded)
        for layer in self.layers:
            data = (layer(self.around(self.drop(data.masked_fill(hidden, 0.0)))) + data) * SQRT_HALF
        data = self.narrow(data).masked_fill(hidden, 0.0)
        mean = data.sum(1, keepdim=True) / keep.sum(1).clamp_min(1)[:, None, None]
        return Encoded(data, keep, (mean,), values=(data + embedded) * SQRT_HALF, tokens=tokens)

    def around(self, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch around size"]:
        """Pad with zeros on both sides, so that the convolution keeps the length."""
        return F.pad(data, (0, 0, self.side, self.side))
