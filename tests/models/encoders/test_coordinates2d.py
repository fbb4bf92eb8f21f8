import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.data.image.batch import collate_images
from regard.models.encoders.coordinates2d import compute_centres, encode_coordinates, measure_sizes


def test_a_place_stands_in_the_middle_of_its_window():
    pictures = collate_images([torch.zeros(1, 4, 8)])
    found = compute_centres(pictures, Encoded(torch.zeros(1, 2, 3), grid=(1, 2)), 4)
    assert_close(found, torch.tensor([[[0.25, 0.5], [0.75, 0.5]]]))


def test_shares_are_of_each_picture_itself():
    pictures = collate_images([torch.zeros(1, 8, 8), torch.zeros(1, 4, 4)])
    assert measure_sizes(pictures).tolist() == [[8, 8], [4, 4]]
    found = compute_centres(pictures, Encoded(torch.zeros(2, 4, 3), grid=(2, 2)), 4)
    assert found[0].tolist() == [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]
    assert found[1, 0].tolist() == [0.5, 0.5]


def test_waves_agree_most_with_those_of_the_same_place():
    places = torch.rand(50, 2)
    vectors = encode_coordinates(places, 32)
    products = vectors @ vectors.mT
    assert (products.argmax(1) == torch.arange(50)).all()
    assert_close(products.diagonal(), torch.full((50,), 16.0))


def test_waves_give_each_number_its_own_room():
    first, second = encode_coordinates(torch.tensor([0.3, 0.1]), 16), encode_coordinates(torch.tensor([0.3, 0.9]), 16)
    assert_close(first[:8], second[:8])
    assert not torch.allclose(first[8:], second[8:])


def test_a_size_without_room_for_the_waves_is_refused():
    with pytest.raises(ValueError, match=r"waves of 2 numbers need a size that is a multiple of 4, .* got 6"):
        encode_coordinates(torch.zeros(3, 2), 6)


def test_a_source_that_is_no_map_is_refused():
    with pytest.raises(ValueError, match="this encoder gives no grid"):
        compute_centres(collate_images([torch.zeros(1, 4, 4)]), Encoded(torch.zeros(1, 4, 3)), 2)


def test_places_are_exact_whatever_the_pictures_are_in():
    pictures, encoded = collate_images([torch.zeros(1, 8, 1001)]), Encoded(torch.zeros(1, 1000, 3), grid=(2, 500))
    half = pictures._replace(data=pictures.data.bfloat16())
    assert measure_sizes(half).tolist() == [[1001, 8]]
    assert torch.equal(compute_centres(half, encoded, 2), compute_centres(pictures, encoded, 2))
