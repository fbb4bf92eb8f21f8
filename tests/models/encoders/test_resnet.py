import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention.masked_norm import BatchNorm
from regard.attention.visual import Visual
from regard.data.image.batch import Images, collate_images
from regard.models.encoders.resnet import Block, Residual

EVERYWHERE = torch.ones(2, 6, 7, dtype=torch.bool)


def test_a_block_is_the_formula_of_the_paper():
    block, image = Block(8, 8, 1, "group", "none", 0.0), torch.randn(2, 8, 6, 7)
    inner = F.relu(F.group_norm(F.conv2d(image, block.first.weight, padding=1), 1))
    found = F.group_norm(F.conv2d(inner, block.second.weight, padding=1), 1)
    assert_close(block(image, EVERYWHERE)[0], F.relu(image + found))


def test_where_the_map_changes_so_does_the_way_around():
    block, image = Block(8, 16, 2, "group", "channel", 0.0), torch.randn(2, 8, 6, 7)
    inner = F.relu(F.group_norm(F.conv2d(image, block.first.weight, stride=2, padding=1), 2))
    found = block.attention(F.group_norm(F.conv2d(inner, block.second.weight, padding=1), 2))
    around = F.group_norm(F.conv2d(image, block.around.weight, stride=2), 2)
    data, keep = block(image, EVERYWHERE)
    assert_close(data, F.relu(around + found))
    assert keep.shape == (2, 3, 4)


@pytest.mark.parametrize(("stem", "stages", "stride"), [(1, (1,), 1), (2, (1, 2), 4), (1, (1, 1, 1), 4), (2, (1,) * 4, 16)])
def test_channels_double_and_places_halve_from_stage_to_stage(stem, stages, stride):
    encoder = Residual(3, 32, stages=stages, stem=stem)
    assert (encoder.size, encoder.stride) == (32, stride)
    assert len(encoder.blocks) == sum(stages)
    assert encoder.stem.weight.shape[0] == 32 // 2 ** (len(stages) - 1)
    encoded = encoder(collate_images([torch.rand(3, 33, 20)]))
    assert encoded.grid == (-(-33 // stride), -(-20 // stride))
    assert encoded.data.shape == (1, encoded.grid[0] * encoded.grid[1], 32)


def test_every_block_has_the_attention_that_is_named():
    encoder = Residual(1, 32, stages=(1, 2), attention="spatial")
    names = [name for name, each in encoder.named_modules() if isinstance(each, Visual)]
    assert names == [f"blocks.{number}.attention" for number in range(3)]
    assert not [each for each in Residual(1, 32).modules() if isinstance(each, Visual)]


def test_a_batch_norm_learns_from_the_kept_places_alone():
    torch.manual_seed(0)
    pictures = collate_images([torch.rand(1, 9, 12), torch.rand(1, 5, 7)])
    wider = Images(F.pad(pictures.data, (0, 5, 0, 3), value=9.0), F.pad(pictures.keep, (0, 5, 0, 3)))
    one, other = Residual(1, 16, stages=(1, 1), norm="batch"), Residual(1, 16, stages=(1, 1), norm="batch")
    other.load_state_dict(one.state_dict())
    assert isinstance(one.norm, BatchNorm)
    first, second = one(pictures), other(wider)
    assert_close(first.final, second.final, atol=1e-5, rtol=1e-5)
    assert_close(dict(one.named_buffers()), dict(other.named_buffers()), atol=1e-5, rtol=1e-5)


def test_dropout_falls_in_training_only():
    encoder, pictures = Residual(1, 16, stages=(1, 1), dropout=0.5), collate_images([torch.rand(1, 9, 12)])
    assert not torch.equal(encoder(pictures).data, encoder(pictures).data)
    assert torch.equal(encoder.eval()(pictures).data, encoder(pictures).data)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stem": 3}, "needs a stem of stride 1 or 2, got 3"),
        ({"stages": ()}, r"needs stages of 1 block or more, got \(\)"),
        ({"stages": (2, 0)}, r"needs stages of 1 block or more, got \(2, 0\)"),
        ({"size": 100}, "of 4 stages needs a size that 8 divides, .* got 100; choose 96"),
        ({"size": 3}, "needs a size that 8 divides, .* got 3; choose 8"),
        ({"norm": "layer"}, "norm needs to be 'group' or 'batch', got 'layer'"),
    ],
)
def test_what_cannot_be_built_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        Residual(3, **{"size": 64} | options)
