"""The Transformer's encoder."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard import lookup
from regard.attention.positions import Positions
from regard.attention.types import Encoded
from regard.data.batch import Padded
from regard.models.attentions import self_attention
from regard.models.embedding import Embedding
from regard.models.residual import Residual, feedforward

Data = Float[Tensor, "batch time size"]


class Layer(nn.Module):
    """Every token looks at all others, then thinks for itself."""

    def __init__(
        self, size: int, heads: int, inner: int, looks: str, norm: str, drop_residual: float, drop_attention: float
    ):
        super().__init__()
        self.self = self_attention(looks, size, heads, dropout=drop_attention)
        self.around_self = Residual(size, norm, drop_residual)
        self.feedforward = feedforward(size, inner)
        self.around_feedforward = Residual(size, norm, drop_residual)

    def forward(self, data: Data, keep: Bool[Tensor, "batch time"]) -> Data:
        entered = self.around_self.enter(data)
        data = self.around_self.leave(data, self.self(entered, self.self.remember(Encoded(entered, keep))).context)
        return self.around_feedforward.leave(data, self.feedforward(self.around_feedforward.enter(data)))


class Transformer(nn.Module):
    """Layers of self-attention and feed-forward networks over embeddings that know their positions.

        x = layer_N(... layer_1(E[s] √d + PE))

    Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    With norm="pre" one more norm follows the last layer. The final state is the mean over the source: this encoder has no
    last state, and a decoder without attention needs one vector. Layer n is the submodule "n".
    """

    def __init__(
        self,
        vocabulary: int,
        size: int,
        *,
        embedding: int | None = None,
        layers: int = 1,
        heads: int = 4,
        inner: int | None = None,
        self_attention: str = "scaled_dot",
        norm: str = "pre",
        positions: Positions | str | None = "sinusoidal",
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        drop_attention: float = 0.0,
    ):
        super().__init__()
        embedding = embedding or size
        placed = lookup.build(positions, "positions", size=embedding)
        self.embedding = Embedding(vocabulary, embedding, scaled=True, positions=placed, dropout=drop_embedding)
        self.widen = nn.Identity() if self.embedding.size == size else nn.Linear(self.embedding.size, size)
        self.names = [str(number) for number in range(layers)]
        for name in self.names:
            self.add_module(name, Layer(size, heads, inner or 4 * size, self_attention, norm, drop_residual, drop_attention))
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()
        self.size = size

    def forward(self, source: Padded) -> Encoded:
        tokens, keep = source
        data = self.widen(self.embedding(tokens))
        for name in self.names:
            data = self.get_submodule(name)(data, keep)
        data = self.norm(data).masked_fill(~keep[..., None], 0.0)
        mean = data.sum(1, keepdim=True) / keep.sum(1).clamp_min(1)[:, None, None]
        return Encoded(data, keep, (mean,), tokens=tokens)
