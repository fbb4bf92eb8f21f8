"""Layers of anomaly detectors: patches of a window as vectors, and encoder layers that return their weights."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.positions.sinusoidal import Sinusoidal
from regard.attention.types import Encoded
from regard.data.series.batch import SeriesSource
from regard.models.attention_factory import build_self_attention

Data = Float[Tensor, "batch patches size"]
Weights = Float[Tensor, "batch heads queries keys"]
Values = Float[Tensor, "batch time targets"]


class Sizes(NamedTuple):
    """Sizes that a network is built for."""

    targets: int
    window: int
    past: int
    known: int


class Patches(nn.Module):
    """Linear embedding of patches: values, the mask of those missing, and covariates, with sinusoidal positions."""

    def __init__(self, sizes: Sizes, patch: int, size: int):
        super().__init__()
        if sizes.window % patch:
            raise ValueError(
                f"a window is cut into patches, and needs data.window to be a multiple of model.patch, got "
                f"{sizes.window} and {patch}"
            )
        self.patch, self.count = patch, sizes.window // patch
        self.embedding = nn.Linear(patch * (2 * sizes.targets + sizes.past + sizes.known), size)
        self.positions = Sinusoidal(size)

    def forward(self, source: SeriesSource) -> Data:
        missing = (~source.observed).to(source.data)
        time = source.data.shape[1]
        features = torch.cat((source.data, missing, source.past, source.known[:, :time]), -1)
        embedded: Data = self.positions(self.embedding(features.reshape(len(features), self.count, -1)))
        return embedded

    def keep(self, source: SeriesSource) -> Bool[Tensor, "batch patches"]:
        """True for patches in which the series has begun."""
        return source.keep.reshape(-1, self.count, self.patch).any(2)


class EncoderLayer(nn.Module):
    """Transformer encoder layer with pre-norm, which also returns the weights of its self-attention.

    x = x + self_attention(norm(x))        x = x + W₂ gelu(W₁ norm(x))
    """

    def __init__(
        self, size: int, heads: int, inner: int, *, attention: str, dropout: float, drop_attention: float, scope: str
    ):
        super().__init__()
        self.self_attention = build_self_attention(attention, size, heads, dropout=drop_attention, scope=scope)
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.feedforward = nn.Sequential(nn.Linear(size, inner), nn.GELU(), nn.Dropout(dropout), nn.Linear(inner, size))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, data: Data, keep: Bool[Tensor, "batch patches"] | None = None, weights: bool = False
    ) -> tuple[Data, Weights | None]:
        encoded = Encoded(self.attention_norm(data), keep)
        attended, _ = self.self_attention.attend_self(encoded, weights=weights)
        data = data + self.dropout(attended.context)
        return data + self.dropout(self.feedforward(self.feedforward_norm(data))), attended.weights


def run_layers(
    layers: nn.ModuleList, data: Data, keep: Bool[Tensor, "batch patches"], weights: bool
) -> tuple[Data, dict[str, Weights]]:
    """Run encoder layers one after the other; returns their weights too, by the names "encoder.n"."""
    attended = dict[str, Weights]()
    for number, layer in enumerate(layers):
        data, layer_weights = layer(data, keep, weights)
        if layer_weights is not None:
            attended[f"encoder.{number}"] = layer_weights
    return data, attended
