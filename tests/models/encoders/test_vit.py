import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.data.image.batch import collate_images
from regard.models.encoders.vit import Patches

PICTURES = collate_images([torch.rand(3, 13, 20), torch.rand(3, 8, 4)])


def small(**options):
    return Patches(3, 16, **{"patch": 4, "layers": 2, "heads": 2} | options).eval()


def test_a_patch_is_its_pixels_times_a_matrix():
    encoder = small(layers=0, positions="none", norm="post")
    encoded = encoder(PICTURES)
    square = PICTURES.data[1, :, 4:8, :4]  # the second row of patches of the second picture
    expected = torch.einsum("ochw,chw->o", encoder.cut.convolution.weight, square) + encoder.cut.convolution.bias
    assert encoded.grid == (4, 5)
    assert_close(encoded.data[1, 5], expected)
    assert encoded.keep[1].nonzero().flatten().tolist() == [0, 5]


def test_the_layers_are_those_of_the_transformer_over_patches_that_know_their_places():
    encoder = small()
    image, keep = encoder.cut(PICTURES.data, PICTURES.keep)
    data = encoder.positions(image, keep).flatten(2).mT
    for name in encoder.names:
        layer = encoder.get_submodule(name)
        entered = layer.around_self.normalise_input(data)
        looked = layer.self(entered, layer.self.remember(Encoded(entered, keep.flatten(1)))).context
        data = data + looked
        data = data + layer.feedforward(layer.around_feedforward.normalise_input(data))
    found = encoder(PICTURES)
    assert_close(found.data[found.keep], encoder.norm(data)[found.keep])


def test_a_query_reads_the_picture_and_is_no_place_of_it():
    encoder = small(query=True)
    encoded = encoder(PICTURES)
    assert encoded.grid == (4, 5)
    assert encoded.data.shape == (2, 20, 16)
    assert encoded.final[0].shape == (2, 1, 16)
    assert not torch.allclose(encoded.final[0][:, 0], encoded.data.sum(1) / encoded.keep.sum(1)[:, None])
    encoded.final[0][..., 0].sum().backward()
    assert encoder.query.grad.any()


@pytest.mark.parametrize("positions", ["sinusoidal", "normalised", "learned"])
def test_without_positions_patches_might_change_places(positions):
    swapped = PICTURES._replace(data=torch.cat((PICTURES.data[..., 4:8], PICTURES.data[..., :4], PICTURES.data[..., 8:]), 3))
    blind, seeing = small(positions="none"), small(positions=positions)
    assert_close(blind(swapped).final[0][0], blind(PICTURES).final[0][0], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(seeing(swapped).final[0][0], seeing(PICTURES).final[0][0], atol=1e-4)


def test_convolutions_lead_to_the_same_map():
    encoder = small(convolutions=True, patch=8)
    assert [each.weight.shape[:2] for each in encoder.cut.halving] == [(4, 3), (8, 4), (16, 8)]
    assert encoder(PICTURES).grid == small(patch=8)(PICTURES).grid == (2, 3)
    assert encoder.stride == 8


def test_dropout_falls_in_training_only():
    encoder = small(dropout=0.3, drop_attention=0.3).train()
    assert not torch.equal(encoder(PICTURES).data, encoder(PICTURES).data)
    assert torch.equal(encoder.eval()(PICTURES).data, encoder(PICTURES).data)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"patch": 0}, "patches need a side of 1 pixel or more, got 0"),
        ({"convolutions": True, "patch": 6}, "power of 2 from 2 on and divides the size, got patch 6 and size 16"),
        ({"convolutions": True, "patch": 1}, "power of 2 from 2 on and divides the size, got patch 1 and size 16"),
        ({"convolutions": True, "patch": 32}, "power of 2 from 2 on and divides the size, got patch 32 and size 16"),
        ({"heads": 3}, "MultiHead needs a size that its heads divide, got size 16 and 3 heads"),
    ],
)
def test_what_cannot_be_built_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        small(**options)


def test_vectors_for_the_whole_come_first_and_are_kept():
    torch.manual_seed(0)
    encoder = small(whole=2, width=12, epsilon=1e-12)
    encoded = encoder(PICTURES)
    assert encoded.data.shape == (2, 2 + 20, 16)
    assert encoded.grid == (4, 5)
    assert encoded.keep[1].nonzero().flatten().tolist() == [0, 1, 2, 7]
    assert encoder.norm.eps == encoder.get_submodule("0").around_self.norm.eps == 1e-12
    assert encoder.fit.in_features == 12
    assert_close(encoded.final[0][:, 0], encoded.data[:, 0])
    with torch.no_grad():
        encoder.query[1] = torch.randn(12)
    assert (encoder(PICTURES).data[:, 2] - encoded.data[:, 2]).abs().max() > 1e-4  # the places see both


def test_a_table_is_for_maps_of_one_size():
    encoder = small(table=(4, 5), layers=0, norm="post")
    found = encoder(PICTURES).data[0, 7] - encoder.cut(PICTURES.data, PICTURES.keep)[0][0, :, 1, 2]
    assert_close(found, encoder.positions.table[1, 2])
    with pytest.raises(ValueError, match="GridTable has vectors for a map of 4 x 5, and met one of 2 x 2; read every"):
        encoder(collate_images([torch.rand(3, 8, 8)]))
