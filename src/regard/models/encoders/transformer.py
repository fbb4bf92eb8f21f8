"""The Transformer's encoder."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard import lookup
from regard.attention.positions import Positions
from regard.attention.types import Encoded
from regard.data.batch import Padded
from regard.models.embedding import Embedding
from regard.models.shared_bias import share
from regard.models.sublayers import Sublayers

Data = Float[Tensor, "batch time size"]


class Layer(nn.Module):
    """Every token looks at all others, then thinks for itself."""

    def __init__(self, made: Sublayers):
        super().__init__()
        self.self = made.look()
        self.around_self = made.around()
        self.feedforward = made.think()
        self.around_feedforward = made.around()

    def forward(self, data: Data, keep: Bool[Tensor, "batch time"]) -> Data:
        entered = self.around_self.enter(data)
        data = self.around_self.leave(data, self.self(entered, self.self.remember(Encoded(entered, keep))).context)
        return self.around_feedforward.leave(data, self.feedforward(self.around_feedforward.enter(data)))


class Transformer(nn.Module):
    """Layers of self-attention and feed-forward networks over embeddings that know their positions.

        x = layer_N(... layer_1(E[s] √d + PE))

    Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    Unless norm="post" one more norm follows the last layer. The final state is the mean over the source: this encoder has no
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
        activation: str = "relu",
        gated: bool = False,
        bias: bool = True,
        self_attention: str = "scaled_dot",
        self_size: int | None = None,
        shared_bias: bool = False,
        norm: str = "pre",
        positions: Positions | str | None = "sinusoidal",
        scaled: bool = True,
        norm_embedding: bool = False,
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        drop_attention: float = 0.0,
    ):
        super().__init__()
        embedding = embedding or size
        placed = lookup.build(positions, "positions", size=embedding)
        self.embedding = Embedding(
            vocabulary, embedding, scaled=scaled, positions=placed, dropout=drop_embedding, norm=norm_embedding
        )
        self.widen = nn.Identity() if self.embedding.size == size else nn.Linear(self.embedding.size, size)
        self.names = [str(number) for number in range(layers)]
        looks = self_attention, self_size, norm, drop_residual, drop_attention
        made = Sublayers(size, heads, inner, activation, gated, bias, *looks)
        every = [Layer(made) for _ in self.names]
        for name, layer in zip(self.names, every, strict=True):
            self.add_module(name, layer)
        if shared_bias:
            share([layer.self for layer in every], causal=False)
        self.norm = made.last()
        self.size = size

    def forward(self, source: Padded) -> Encoded:
        tokens, keep = source
        data = self.widen(self.embedding(tokens))
        for name in self.names:
            data = self.get_submodule(name)(data, keep)
        data = self.norm(data).masked_fill(~keep[..., None], 0.0)
        mean = data.sum(1, keepdim=True) / keep.sum(1).clamp_min(1)[:, None, None]
        return Encoded(data, keep, (mean,), tokens=tokens)
