"""Layers of forecasting networks: Transformer encoder layers, and the moving average that splits trend from season."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.types import Encoded
from regard.config import Dropout
from regard.models.attention_factory import build_self_attention
from regard.tasks.forecast.config import ForecastModel

Data = Float[Tensor, "rows time size"]
Mask = Bool[Tensor, "rows time"] | None


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of each feature over rows and time, which the authors of PatchTST prefer to layer norm."""

    def forward(self, data: Data) -> Data:
        normalised: Data = super().forward(data.mT).mT
        return normalised


def build_norm(norm: str, size: int) -> nn.Module:
    """Layer norm, or batch norm."""
    return BatchNorm(size) if norm == "batch" else nn.LayerNorm(size)


class EncoderLayer(nn.Module):
    """Transformer encoder layer with post-norm: self-attention, then a feed-forward network with GELU.

    x = norm(x + self_attention(x))        x = norm(x + W₂ gelu(W₁ x))
    """

    def __init__(
        self, size: int, heads: int, inner: int, *, attention: str, norm: str, dropout: float, drop_attention: float
    ):
        super().__init__()
        options: dict[str, Any] = {"dropout": drop_attention}
        self.self_attention = build_self_attention(attention, size, heads, **options)
        self.attention_norm, self.feedforward_norm = build_norm(norm, size), build_norm(norm, size)
        self.feedforward = nn.Sequential(nn.Linear(size, inner), nn.GELU(), nn.Dropout(dropout), nn.Linear(inner, size))
        self.dropout = nn.Dropout(dropout)

    def forward(self, data: Data, keep: Mask = None, weights: bool = False) -> tuple[Data, Tensor | None]:
        attended, _ = self.self_attention.attend_self(Encoded(data, keep), weights=weights)
        data = self.attention_norm(data + self.dropout(attended.context))
        output: Data = self.feedforward_norm(data + self.dropout(self.feedforward(data)))
        return output, attended.weights


class MovingAverage(nn.Module):
    """Moving average of an odd number of steps; the ends are continued by their first and last value.

    Wu et al. 2021, section 3.1, https://arxiv.org/abs/2106.13008
    """

    def __init__(self, steps: int):
        super().__init__()
        if steps % 2 == 0:
            raise ValueError(f"a moving average needs an odd number of steps, got {steps}")
        self.steps = steps

    def forward(self, values: Float[Tensor, "*rows time"]) -> Float[Tensor, "*rows time"]:
        side = self.steps // 2
        first, last = values[..., :1].expand(*values.shape[:-1], side), values[..., -1:].expand(*values.shape[:-1], side)
        padded = torch.cat((first, values, last), -1)
        return padded.unfold(-1, self.steps, 1).mean(-1)


def build_encoder(settings: ForecastModel, dropout: Dropout) -> nn.ModuleList:
    """Layers of a Transformer encoder, as the settings of a model say."""
    return nn.ModuleList(build_encoder_layer(settings, dropout) for _ in range(settings.layers))


def build_encoder_layer(settings: ForecastModel, dropout: Dropout) -> EncoderLayer:
    """One layer of it."""
    return EncoderLayer(
        settings.hidden_size,
        settings.heads,
        settings.feedforward_size,
        attention=settings.self_attention,
        norm=settings.norm,
        dropout=dropout.residual,
        drop_attention=dropout.attention,
    )
