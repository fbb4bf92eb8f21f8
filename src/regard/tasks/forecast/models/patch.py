"""Patches of a look-back as tokens, each target on its own (PatchTST)."""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.config import Dropout
from regard.data.series.batch import SeriesSource
from regard.errors import ConfigError
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.layers import EncoderLayer, build_encoder
from regard.tasks.forecast.model import Horizon, Look, Looks, Sizes, Values


class Patch(nn.Module):
    """Transformer encoder over patches of one target at a time, and a linear map from all of them to the horizon.

        tokens = W patches + positions        forecast = W_h flatten(encoder(tokens))

    Nie et al. 2023, section 3.1, https://arxiv.org/abs/2211.14730
    The look-back is continued by its last value for one stride, as in the authors' code. All targets share the weights.
    """

    def __init__(self, settings: ForecastModel, dropout: Dropout, sizes: Sizes):
        super().__init__()
        if settings.patch_length > sizes.look_back:
            raise ConfigError(
                f"model.patch_length={settings.patch_length} needs a look-back of at least as many steps, got "
                f"data.look_back={sizes.look_back}"
            )
        self.length, self.stride = settings.patch_length, settings.patch_stride
        count = (sizes.look_back + self.stride - self.length) // self.stride + 1
        self.embedding = nn.Linear(self.length, settings.hidden_size)
        self.positions = nn.Parameter(torch.empty(count, settings.hidden_size).uniform_(-0.02, 0.02))
        self.dropout = nn.Dropout(dropout.embedding)
        self.layers = build_encoder(settings, dropout)
        self.head = nn.Linear(count * settings.hidden_size, sizes.horizon * sizes.output)
        self.horizon, self.output = sizes.horizon, sizes.output

    def forward(
        self,
        values: Values,
        source: SeriesSource,
        target: Horizon | None = None,
        sampling: float = 0.0,
        looks: Looks | None = None,
    ) -> Float[Tensor, "batch horizon targets size"]:
        rows = values.mT.flatten(0, 1)
        continued = torch.cat((rows, rows[:, -1:].expand(-1, self.stride)), 1)
        tokens = self.dropout(self.embedding(continued.unfold(1, self.length, self.stride)) + self.positions)
        for number, layer in enumerate(self.layers):
            tokens, weights = cast(EncoderLayer, layer)(tokens, weights=looks is not None)
            if looks is not None and weights is not None:
                looks[f"layers.{number}.self_attention"] = Look("patches", "patches", self._by_row(weights, len(values)))
        mapped = self.head(tokens.flatten(1))
        return mapped.view(len(values), -1, self.horizon, self.output).transpose(1, 2)

    @staticmethod
    def _by_row(weights: Tensor, rows: int) -> Tensor:
        """Weights as (batch, targets x heads, patches, patches): each target has heads of its own."""
        return weights.reshape(rows, -1, *weights.shape[2:])


def build(settings: ForecastModel, dropout: Dropout, sizes: Sizes) -> nn.Module:
    """The network of settings."""
    return Patch(settings, dropout, sizes)
