"""Variates as tokens (iTransformer): attention is between the targets and covariates of a series."""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.config import Dropout
from regard.data.series.batch import SeriesSource
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.layers import EncoderLayer, build_encoder
from regard.tasks.forecast.model import Horizon, Look, Looks, Sizes, Values


class Inverted(nn.Module):
    """Transformer encoder whose tokens are whole variates of the look-back: targets, then covariates.

        token_v = W x_v        forecast_v = W_h encoder(tokens)_v

    Liu et al. 2024, section 3.2, https://arxiv.org/abs/2310.06625
    Attention is by variable: a weight says how much the forecast of one target takes from another one or from a covariate.
    """

    def __init__(self, settings: ForecastModel, dropout: Dropout, sizes: Sizes):
        super().__init__()
        self.embedding = nn.Linear(sizes.look_back, settings.hidden_size)
        self.dropout = nn.Dropout(dropout.embedding)
        self.layers = build_encoder(settings, dropout)
        self.head = nn.Linear(settings.hidden_size, sizes.horizon * sizes.output)
        self.horizon, self.output, self.targets = sizes.horizon, sizes.output, sizes.targets

    def forward(
        self,
        values: Values,
        source: SeriesSource,
        target: Horizon | None = None,
        sampling: float = 0.0,
        looks: Looks | None = None,
    ) -> Float[Tensor, "batch horizon targets size"]:
        variates = torch.cat((values, source.past, source.known[:, : values.shape[1]]), -1).mT
        tokens = self.dropout(self.embedding(variates))
        for number, layer in enumerate(self.layers):
            tokens, weights = cast(EncoderLayer, layer)(tokens, weights=looks is not None)
            if looks is not None and weights is not None:
                looks[f"layers.{number}.self_attention"] = Look("variables", "variables", weights)
        mapped = self.head(tokens[:, : self.targets])
        return mapped.unflatten(-1, (self.horizon, self.output)).transpose(1, 2)


def build(settings: ForecastModel, dropout: Dropout, sizes: Sizes) -> nn.Module:
    """The network of settings."""
    return Inverted(settings, dropout, sizes)
