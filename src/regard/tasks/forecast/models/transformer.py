"""Transformer encoder-decoder over steps: the decoder reads the horizon's covariates and writes it in one forward."""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.positions.sinusoidal import Sinusoidal
from regard.attention.types import Encoded
from regard.config import Dropout
from regard.data.series.batch import SeriesSource
from regard.models.attention_factory import build_attention
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.layers import Data, EncoderLayer, build_encoder, build_encoder_layer, build_norm
from regard.tasks.forecast.model import Horizon, Look, Looks, Sizes, StaticEmbedding, Values, input_size, network_input


class DecoderLayer(nn.Module):
    """Encoder layer over the horizon, then attention over the look-back."""

    def __init__(self, settings: ForecastModel, dropout: Dropout):
        super().__init__()
        size, part = settings.hidden_size, settings.attention
        self.self_layer = build_encoder_layer(settings, dropout)
        self.cross_attention = build_attention(part.name, size, size, heads=part.heads, size=part.size)
        reads = 0 if self.cross_attention is None else self.cross_attention.size
        self.projection = nn.Linear(reads, size) if reads != size else nn.Identity()
        self.norm, self.dropout = build_norm(settings.norm, size), nn.Dropout(dropout.residual)

    def forward(self, data: Data, encoded: Encoded, weights: bool = False) -> tuple[Data, Tensor | None]:
        data, _ = self.self_layer(data)
        if self.cross_attention is None:
            return data, None
        memory = self.cross_attention.remember(encoded)
        attended = self.cross_attention(data, memory, self.cross_attention.start(memory), weights=weights)
        output: Data = self.norm(data + self.dropout(self.projection(attended.context)))
        return output, attended.weights


class Transformer(nn.Module):
    """Transformer encoder over the steps of the look-back, and a decoder over those of the horizon.

    Zhou et al. 2021, section 3.3, https://arxiv.org/abs/2012.07436: the decoder begins with the last steps of the look-back
    and with covariates for the horizon, and forecasts all of its steps in one forward, so that no error is fed back.
    A long look-back is read by a restricted self-attention: model.self_attention=local, dilated, log_sparse.
    """

    def __init__(self, settings: ForecastModel, dropout: Dropout, sizes: Sizes):
        super().__init__()
        size = settings.hidden_size
        self.embedding = nn.Linear(input_size(sizes), size)
        self.target_embedding = nn.Linear(sizes.targets + sizes.known, size)
        self.positions = Sinusoidal(size)
        self.static = StaticEmbedding(sizes.static, size)
        self.dropout = nn.Dropout(dropout.embedding)
        self.encoder = build_encoder(settings, dropout)
        self.decoder = nn.ModuleList(DecoderLayer(settings, dropout) for _ in range(settings.layers))
        self.head = nn.Linear(size, sizes.targets * sizes.output)
        self.horizon, self.targets, self.output = sizes.horizon, sizes.targets, sizes.output
        self.prefix = min(sizes.look_back, sizes.horizon)
        """Steps of the look-back that the decoder begins with."""

    def forward(
        self,
        values: Values,
        source: SeriesSource,
        target: Horizon | None = None,
        sampling: float = 0.0,
        looks: Looks | None = None,
    ) -> Float[Tensor, "batch horizon targets size"]:
        time = values.shape[1]
        data = self.embedding(network_input(values, source)) + self.static(source.static)[:, None]
        data = self.dropout(self.positions(data))
        for number, layer in enumerate(self.encoder):
            data, weights = cast(EncoderLayer, layer)(data, source.keep, weights=looks is not None)
            if looks is not None and weights is not None:
                looks[f"encoder.{number}.self_attention"] = Look("look-back", "look-back", weights)
        start = torch.cat((values[:, time - self.prefix :], values.new_zeros(len(values), self.horizon, self.targets)), 1)
        covariates = source.known[:, time - self.prefix :]
        decoded = self.dropout(self.positions(self.target_embedding(torch.cat((start, covariates), -1))))
        for number, layer in enumerate(self.decoder):
            decoded, weights = cast(DecoderLayer, layer)(decoded, Encoded(data, source.keep), looks is not None)
            if looks is not None and weights is not None:
                looks[f"decoder.{number}.cross_attention"] = Look("horizon", "look-back", weights[:, :, self.prefix :])
        return self.head(decoded[:, self.prefix :]).unflatten(-1, (self.targets, self.output))


def build(settings: ForecastModel, dropout: Dropout, sizes: Sizes) -> nn.Module:
    """The network of settings."""
    return Transformer(settings, dropout, sizes)
