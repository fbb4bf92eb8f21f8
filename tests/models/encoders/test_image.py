import pytest
import torch
from torch import nn

from regard.attention.types import Encoded
from regard.config import ImageDropout, ImageModel
from regard.data.image.batch import collate_images
from regard.models.encoders.image import StandardisingEncoder, build_standardising_encoder

STANDARD = ((0.5, 0.25, 0.0), (0.5, 0.5, 0.1))


class Seen(nn.Module):
    """Notes the pictures that it is given."""

    size, stride = 4, 8

    def forward(self, pictures):
        self.pictures = pictures
        batch, _, height, width = pictures.data.shape
        grid = height // 8, width // 8
        data = torch.zeros(batch, grid[0] * grid[1], 4)
        return Encoded(data, torch.ones(batch, grid[0] * grid[1], dtype=torch.bool), grid=grid)


def test_the_mean_of_each_channel_is_taken_off_and_it_is_divided_by_its_deviation():
    seen = Seen()
    StandardisingEncoder(seen, STANDARD)(collate_images([torch.full((3, 8, 8), 0.5)], 8))
    assert torch.allclose(seen.pictures.data[0, :, 0, 0], torch.tensor([0.0, 0.5, 5.0]))


@pytest.mark.parametrize("kind", ["resnet", "densenet", "vit"])
def test_every_kind_of_encoder_makes_a_map_of_its_size(kind):
    encoder = build_standardising_encoder(
        ImageModel(encoder=kind, hidden_size=16, depth=1, map_size=8), ImageDropout(), STANDARD
    )
    found = encoder(collate_images([torch.rand(3, 16, 24)], 8))
    assert (encoder.size, encoder.stride) == (8, 8)
    assert found.data.shape == (1, 6, 8)
    assert found.grid == (2, 3)


def test_places_of_a_map_know_where_they_are_unless_they_are_not_to():
    model = ImageModel(hidden_size=8, depth=1)
    torch.manual_seed(0)
    told = build_standardising_encoder(model, ImageDropout(), STANDARD).eval()
    plain = StandardisingEncoder(told.encoder, STANDARD).eval()
    picture = collate_images([torch.rand(3, 16, 16)], 8)
    added = told(picture).data - plain(picture).data
    assert not torch.allclose(added[0, 0], added[0, 3])
    assert (
        build_standardising_encoder(
            ImageModel(hidden_size=8, depth=1, map_positions="none"), ImageDropout(), STANDARD
        ).positions
        is None
    )
