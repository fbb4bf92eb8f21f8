"""Picture encoder as a config describes it: standardises its input and adds positions to its feature map."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.attention.types import Encoded
from regard.config import ImageDropout, ImageModel
from regard.data.image.batch import Images
from regard.models.encoders.backbones import build_image_encoder
from regard.models.encoders.positions2d import GridPositions, add_positions, build_grid_positions
from regard.models.image2seq import encoder_options

ChannelStatistics = tuple[Sequence[float], Sequence[float]]
"""Mean and standard deviation of each channel."""


class StandardisingEncoder(nn.Module):
    """Picture encoder that standardises its input and adds positions to its feature map.

    Most of a picture is background, and what all positions share would drown what is on it. Convolutions know positions at
    the edges alone.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, encoder: nn.Module, standard: ChannelStatistics, positions: GridPositions | None = None):
        super().__init__()
        self.encoder, self.positions = encoder, positions
        self.size, self.stride = int(encoder.size), int(encoder.stride)  # type: ignore[arg-type]
        self.register_buffer("mean", torch.tensor(standard[0])[:, None, None])
        self.register_buffer("deviation", torch.tensor(standard[1])[:, None, None])

    def forward(self, pictures: Images) -> Encoded:
        encoded: Encoded = self.encoder(pictures._replace(data=(pictures.data - self.mean) / self.deviation))
        return add_positions(encoded, self.positions)


def build_standardising_encoder(
    model: ImageModel, dropout: ImageDropout, standard: ChannelStatistics
) -> StandardisingEncoder:
    """Build the picture encoder that a config describes."""
    encoder = build_image_encoder(
        model.encoder, len(standard[0]), model.map_size or model.hidden_size, **encoder_options(model, dropout)
    )
    positions = None if model.encoder == "vit" else build_grid_positions(model.map_positions, encoder.size)
    return StandardisingEncoder(encoder, standard, positions)
