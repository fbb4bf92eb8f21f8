import pytest
import torch
from torch.testing import assert_close

from regard.data.image.batch import Images, collate_images
from regard.models.encoders.feature_map import (
    average_pool,
    build_convolution,
    downsample_mask,
    flatten_map,
    mask_pictures,
    upsample,
)


def kept(*sizes, height, width):
    found = torch.zeros(len(sizes), height, width, dtype=torch.bool)
    for row, (tall, wide) in enumerate(sizes):
        found[row, :tall, :wide] = True
    return found


def test_what_stands_around_a_picture_does_not_enter():
    pictures = collate_images([torch.ones(1, 1, 2), torch.ones(1, 2, 1)])
    spoiled = Images(pictures.data.masked_fill(~pictures.keep[:, None], torch.nan), pictures.keep)
    image, keep = mask_pictures(spoiled, 1)
    assert image[:, 0].tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    assert keep is pictures.keep


@pytest.mark.parametrize(("shape", "keep"), [((2, 3, 4, 4), (2, 4, 4)), ((2, 1, 0, 4), (2, 0, 4))], ids=str)
def test_pictures_of_other_channels_or_of_nothing_are_refused(shape, keep):
    text = r"made for pictures of \(batch, 1, height, width\) with at least one pixel, got .* with 1 channel, or build"
    with pytest.raises(ValueError, match=text):
        mask_pictures(Images(torch.zeros(shape), torch.ones(keep, dtype=torch.bool)), 1)


def test_a_place_is_kept_where_its_window_has_any_pixel():
    keep = kept((3, 5), (1, 1), (4, 4), (0, 0), height=5, width=7)
    found = downsample_mask(keep)
    assert found.shape == (4, 3, 4)
    assert torch.equal(found, kept((2, 3), (1, 1), (2, 2), (0, 0), height=3, width=4))
    assert torch.equal(downsample_mask(found), downsample_mask(keep, 4))


def test_the_mean_of_four_places_is_one_of_those_that_are_kept():
    image = torch.tensor([[[[1.0, 3.0, 5.0], [5.0, 7.0, 99.0], [2.0, 99.0, 99.0]]]])
    keep = torch.tensor([[[True, True, True], [True, True, False], [True, False, False]]])
    assert average_pool(image, keep)[0, 0].tolist() == [[4, 5], [2, 0]]


def test_what_was_one_becomes_four_again():
    image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert upsample(image, 3, 3)[0, 0].tolist() == [[1, 1, 2], [1, 1, 2], [3, 3, 4]]


def test_a_map_leaves_row_after_row_with_the_mean_of_what_is_kept():
    image, keep = torch.arange(12.0).view(1, 2, 2, 3), kept((2, 2), height=2, width=3)
    encoded = flatten_map(image, keep)
    assert encoded.grid == (2, 3)
    assert encoded.data[0].tolist() == [[0, 6], [1, 7], [0, 0], [3, 9], [4, 10], [0, 0]]
    assert encoded.keep[0].tolist() == [True, True, False, True, True, False]
    assert_close(encoded.final[0], torch.tensor([[[2.0, 8.0]]]))
    assert encoded.tokens is None
    assert_close(flatten_map(image, keep, torch.ones(1, 2)).final[0], torch.ones(1, 1, 2))


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (7, 2), (1, 2)])
@pytest.mark.parametrize("side", [1, 6, 7])
def test_a_convolution_keeps_as_many_places_as_are_kept(kernel, stride, side):
    found = build_convolution(2, 4, kernel, stride)(torch.randn(1, 2, side, side + 1))
    assert found.shape[2:] == downsample_mask(torch.ones(1, side, side + 1, dtype=torch.bool), stride).shape[1:]
