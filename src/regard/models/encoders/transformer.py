"""Transformer encoder of token sequences."""

from typing import cast

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard import registry
from regard.attention.module import zero_padding
from regard.attention.positions import Positions
from regard.attention.types import Encoded
from regard.data.batch import Padded, places
from regard.models.layers.embedding import Embedding
from regard.models.layers.shared_bias import share_bias
from regard.models.layers.transformer import Sublayers

Data = Float[Tensor, "batch time size"]
Documents = Int[Tensor, "batch time"] | None


class Layer(nn.Module):
    """Encoder layer: self-attention, then a feed-forward network."""

    def __init__(self, sublayers: Sublayers):
        super().__init__()
        self.self = sublayers.build_self_attention()
        self.around_self = sublayers.build_residual()
        self.feedforward = sublayers.build_feedforward()
        self.around_feedforward = sublayers.build_residual()

    def forward(self, data: Data, keep: Bool[Tensor, "batch time"]) -> Data:
        return self.around_feedforward.add(*self.attend(data, self.around_self.normalise_input(data, keep), keep))

    def attend(
        self, data: Data, entered: Data, keep: Bool[Tensor, "batch time"], documents: Documents = None
    ) -> tuple[Data, Data]:
        """Residual stream and feed-forward output of this layer, from the normalised input of its self-attention."""
        source = Encoded(entered, keep, clean=self.around_self.cleans(data), documents=documents)
        attended, _ = self.self.attend_self(source)
        data, entered = self.around_self.add_and_normalise(data, attended.context, self.around_feedforward.norm)
        return data, self.feedforward(entered)


class Transformer(nn.Module):
    """Transformer encoder: layers of self-attention and feed-forward networks over embeddings with positions.

        x = layer_N(... layer_1(E[s] √d + PE))

    Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    Unless norm="post" one more norm follows the last layer. The final state is the mean over the source: this encoder has no
    last state, and a decoder without attention needs one vector. Layer n is the submodule "n". Packed examples do not attend
    to each other, and the positions of each begin at 0; the mean is that of the row.
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
        self_attention_size: int | None = None,
        shared_bias: bool = False,
        norm: str = "pre",
        positions: Positions | str | None = "sinusoidal",
        scaled: bool = True,
        embedding_norm: bool = False,
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        drop_attention: float = 0.0,
    ):
        super().__init__()
        embedding = embedding or size
        placed = registry.build(positions, "positions", size=embedding)
        self.embedding = Embedding(
            vocabulary, embedding, scaled=scaled, positions=placed, dropout=drop_embedding, norm=embedding_norm
        )
        self.widen = nn.Identity() if self.embedding.size == size else nn.Linear(self.embedding.size, size)
        self.names = [str(number) for number in range(layers)]
        options = self_attention, self_attention_size, norm, drop_residual, drop_attention
        sublayers = Sublayers(size, heads, inner, activation, gated, bias, *options)
        every = [Layer(sublayers) for _ in self.names]
        for name, layer in zip(self.names, every, strict=True):
            self.add_module(name, layer)
        if shared_bias:
            share_bias([layer.self for layer in every], causal=False)
        self.norm = sublayers.build_final_norm()
        self.size = size

    def forward(self, source: Padded) -> Encoded:
        tokens, keep, documents = source.data, source.keep, source.documents
        placed = None if documents is None else places(documents)
        data = self.widen(self.embedding(tokens, places=placed))
        layers = [cast(Layer, self.get_submodule(name)) for name in self.names]
        norms = [*(layer.around_self.norm for layer in layers[1:]), self.norm]
        entered, clean = layers[0].around_self.normalise_input(data, keep), layers[0].around_self.cleans(data)
        for layer, norm in zip(layers, norms, strict=True):  # each residual sum is fused with the next layer's norm
            data, entered = layer.around_feedforward.add_and_normalise(
                *layer.attend(data, entered, keep, documents), norm, keep
            )
        data = zero_padding(Encoded(entered, keep, clean=clean))
        mean = data.sum(1, keepdim=True) / keep.sum(1).clamp_min(1)[:, None, None]
        return Encoded(data, keep, (mean,), tokens=tokens, clean=clean, documents=documents)
