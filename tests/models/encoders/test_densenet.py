import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.data.image.batch import collate_images
from regard.models.encoders.densenet import Block, Dense

PICTURES = collate_images([torch.rand(1, 40, 70), torch.rand(1, 33, 17)])


def test_a_block_is_the_formula_of_the_paper():
    block, image = Block(8, 8, 2, "group", 0.0), torch.randn(2, 8, 3, 4)
    found = image
    for narrow, look in zip(block.narrow, block.look, strict=True):
        inner = F.conv2d(F.relu(F.group_norm(found, found.shape[1] // 8)), narrow.convolution.weight)
        assert inner.shape[1] == 32
        more = F.conv2d(F.relu(F.group_norm(inner, 4)), look.convolution.weight, padding=1)
        found = torch.cat((found, more), dim=1)
    assert_close(block(image, torch.ones(2, 3, 4, dtype=torch.bool)), found)
    assert found.shape[1] == 8 + 2 * 8


def test_it_has_the_channels_of_the_paper():
    with torch.device("meta"):
        encoder = Dense(1, 256)
        fine = Dense(1, 256, fine=True)
    assert encoder.stem.weight.shape == (48, 1, 7, 7)
    assert [each.convolution.weight.shape[:2] for each in encoder.halvings] == [(216, 432), (300, 600)]
    assert encoder.last.convolution.weight.shape == (256, 684, 1, 1)
    assert len(fine.fine.look) == 8
    assert fine.last.convolution.weight.shape == (256, 684 + 600 + 8 * 24, 1, 1)


@pytest.mark.parametrize(("fine", "stride", "grid"), [(False, 16, (3, 5)), (True, 8, (5, 9))])
def test_a_place_is_a_square_of_pixels(fine, stride, grid):
    encoder = Dense(1, 24, growth=8, layers=2, fine=fine)
    encoded = encoder(PICTURES)
    assert (encoder.size, encoder.stride, encoded.grid) == (24, stride, grid)
    assert encoded.data.shape == (2, grid[0] * grid[1], 24)
    assert encoded.keep[1].sum() == -(-33 // stride) * -(-17 // stride)


@pytest.mark.parametrize(
    "options", [{}, {"fine": True}, {"attention": "channel_spatial", "fine": True, "layers": 1}], ids=str
)
def test_everything_in_it_learns(options):
    encoder = Dense(1, 24, **{"growth": 8, "layers": 2} | options)
    encoder(PICTURES).data.square().sum().backward()
    for path, parameter in encoder.named_parameters():
        assert parameter.grad is not None, path
        assert parameter.grad.isfinite().all(), path
        assert parameter.grad.any(), path


def test_an_attention_stands_behind_each_block():
    assert len(Dense(1, 24, growth=8, layers=1, attention="channel").attentions) == 3
    assert not Dense(1, 24, growth=8, layers=1).attentions


def test_dropout_falls_in_training_only():
    encoder = Dense(1, 16, growth=8, layers=1, dropout=0.2)
    assert not torch.equal(encoder(PICTURES).data, encoder(PICTURES).data)
    assert torch.equal(encoder.eval()(PICTURES).data, encoder(PICTURES).data)


@pytest.mark.parametrize("options", [{"layers": 0}, {"growth": 0}], ids=str)
def test_a_block_of_nothing_is_refused(options):
    layers, growth = options.get("layers", 16), options.get("growth", 24)
    text = f"needs 1 layer or more and a growth of 1 or more, got {layers} and {growth}"
    with pytest.raises(ValueError, match=text):
        Dense(1, 16, **options)
