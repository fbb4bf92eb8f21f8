import dataclasses

import pytest
import torch

from regard import registry
from regard.config import AttentionPart, ImageDropout, ImageToTextModel, VitPart
from regard.data.batch import shifted
from regard.data.image.batch import collate_images
from regard.models.decoders import DecoderMemory
from regard.models.image2seq import Image2Seq, build

STANDARD = ((0.5,) * 3, (0.25,) * 3)
SMALL = ImageToTextModel(hidden_size=16, depth=1, stride=4, heads=2, attention=AttentionPart(heads=2))
TARGET = torch.tensor([[5, 6, 2], [6, 2, 0]])


def made(**settings) -> Image2Seq:
    return build(dataclasses.replace(SMALL, **settings), ImageDropout(0.0, 0.0), 9, (16, 24), STANDARD).eval()


def pictures():
    return collate_images([torch.rand(3, 16, 24), torch.rand(3, 9, 13)], 4)


@pytest.mark.parametrize("decoder", ["recurrent", "transformer", "convolution"])
@pytest.mark.parametrize("encoder", ["resnet", "densenet", "vit"])
def test_every_encoder_goes_with_every_decoder(encoder, decoder):
    model = made(encoder=encoder, decoder=decoder, stride=8 if encoder == "densenet" else 4, map_size=24)
    source = pictures()
    together = model(source, shifted(TARGET), weights=True)
    assert together.output.shape == (2, 3, 9)
    alone = model(source.select_rows([1]), shifted(TARGET[1:]))
    torch.testing.assert_close(together.output[1:], alone.output, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [*registry.names("mechanisms"), "hard", "additive+hard", "sparsemax", "none"])
def test_every_attention_reads_a_map_but_for_one_that_copies(name):
    if name == "pointer":
        with pytest.raises(ValueError, match="'pointer' copies words of its source, and a picture has none"):
            made(attention=AttentionPart(name))
        return
    model = made(attention=AttentionPart(name, heads=2))
    assert model(pictures(), shifted(TARGET)).output.isfinite().all()


def test_coverage_on_a_map_knows_its_rows_and_columns():
    model = made(attention=AttentionPart("grid_coverage"))
    memory = model.encode(pictures())
    assert isinstance(memory, DecoderMemory)
    assert memory.memories["decoder.cross"].grid == (4, 6)


def test_pictures_are_standardised():
    model = made(map_positions="none")
    source = pictures()
    plain = model.encoder(source._replace(data=(source.data - 0.5) / 0.25))
    torch.testing.assert_close(model.read(source).data, plain.data)
    assert {"mean", "deviation"} <= model.state_dict().keys()


@pytest.mark.parametrize("kind", ["sinusoidal", "normalised", "learned"])
def test_the_places_of_a_map_know_where_they_are(kind):
    model, source = made(map_positions=kind), pictures()
    blank = source._replace(data=torch.full_like(source.data, 0.5))
    inner = model.read(blank).data.unflatten(1, (4, 6))[0]
    plain = model.encoder(blank._replace(data=torch.zeros_like(blank.data))).data.unflatten(1, (4, 6))[0]
    told = inner - plain
    torch.testing.assert_close(told[1, :, 8:], told[2, :, 8:])  # half of a vector is the column's
    torch.testing.assert_close(told[:, 1, :8], told[:, 2, :8])
    assert not torch.allclose(told[1], told[2])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"encoder": "densenet", "stride": 4}, r"a densenet encoder needs model\.stride to be 8 or 16, got 4"),
        ({"stride": 12}, r"model\.stride needs to be a power of 2 from 2 on, got 12"),
        ({"stride": 1}, r"model\.stride needs to be a power of 2 from 2 on, got 1"),
    ],
)
def test_a_stride_that_an_encoder_cannot_have_is_refused(settings, text):
    with pytest.raises(ValueError, match=text):
        made(**settings)


def test_patches_may_have_sizes_of_their_own():
    own = VitPart(
        hidden_size=12,
        heads=3,
        feedforward_size=10,
        activation="gelu_tanh",
        norm="post",
        learned_positions=True,
        cls_tokens=1,
    )
    model = made(encoder="vit", decoder="transformer", vit=own)
    layer = model.encoder.get_submodule("0")
    assert (layer.self.heads, layer.feedforward[0].out_features, layer.feedforward[1].approximate) == (3, 10, "tanh")
    assert not layer.around_self.first
    assert model.decoder.layers[0].around_self.first
    assert model.encoder.positions.table.shape == (4, 6, 12)
    source = collate_images([torch.rand(3, 16, 24)], 4)
    assert model.read(source).data.shape == (1, 25, 16)
