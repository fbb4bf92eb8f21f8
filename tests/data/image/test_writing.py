import numpy as np
import pytest
import torch

from regard.data.image.reading import decode
from regard.data.image.writing import pixels_of, png


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_written_is_read_again_unchanged(channels):
    picture = torch.randint(0, 256, (channels, 5, 7), dtype=torch.uint8)
    read = decode(png(picture), channels=channels)
    assert torch.equal((read * 255).round().byte(), picture)
    assert torch.equal(decode(png(picture.float() / 255), channels=channels), read)


def test_pixels_have_their_channels_last():
    pixels = pixels_of(torch.tensor([[[0.0, 1.0]], [[0.5, 0.5]], [[2.0, -1.0]]]))
    assert pixels.dtype == np.uint8
    assert pixels.tolist() == [[[0, 128, 255], [255, 128, 0]]]
