"""Encoders of frames: shapes, padding, and settings that cannot be built."""

import pytest
import torch

from regard.config import AttentionPart, AudioDropout, AudioToTextModel
from regard.data.audio.batch import Frames, collate_frames
from regard.models import speech2seq
from regard.models.encoders.conformer import ConvolutionModule, SpeechTransformer
from regard.models.encoders.pyramid import Pyramid
from regard.models.encoders.subsampling import ConvolutionalSubsampling, average, halve_mask, join_pairs

ENCODERS = {
    "pyramid": lambda: Pyramid(6, 8, subsampling=4),
    "transformer": lambda: SpeechTransformer(6, 8, subsampling=4, heads=2),
    "conformer": lambda: SpeechTransformer(6, 8, subsampling=4, heads=2, kernel=3),
    "rotary": lambda: SpeechTransformer(6, 8, subsampling=2, heads=2, kernel=3, positions=None, self_attention="rotary"),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_a_recording_is_encoded_alike_alone_and_in_a_batch(name):
    torch.manual_seed(0)
    encoder, parts = ENCODERS[name]().eval(), [torch.randn(length, 6) for length in (13, 4, 1)]
    together = encoder(collate_frames(parts).round_shape())
    stride = 2 if name == "rotary" else 4
    for row, part in enumerate(parts):
        alone = encoder(collate_frames([part]))
        length = -(-len(part) // stride)
        assert alone.data.shape == (1, length, 8)
        assert int(together.keep[row].sum()) == length
        torch.testing.assert_close(together.data[row, :length], alone.data[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(together.final[0][row], alone.final[0][0], rtol=1e-4, atol=1e-5)
    assert not together.data[~together.keep].any()


def test_padding_may_hold_anything():
    torch.manual_seed(0)
    frames = collate_frames([torch.randn(9, 6), torch.randn(3, 6)])
    spoilt = Frames(frames.data.masked_fill(~frames.keep[..., None], float("nan")), frames.keep)
    for build in ENCODERS.values():
        encoder = build().eval()
        torch.testing.assert_close(encoder(spoilt).data, encoder(frames).data)


def test_pairs_and_masks_are_halved_with_odd_ends():
    data = torch.arange(6.0).view(1, 3, 2)
    assert join_pairs(data).tolist() == [[[0, 1, 2, 3], [4, 5, 0, 0]]]
    assert halve_mask(torch.tensor([[True, True, True], [True, False, False]])).tolist() == [[True, True], [True, False]]
    mean = average(torch.tensor([[[2.0], [4.0], [float("nan")]]]), torch.tensor([[True, True, False]]))
    assert mean.tolist() == [[[3.0]]]


def test_a_pyramid_has_the_layers_that_its_subsampling_needs():
    assert [layer.input_size for layer in Pyramid(6, 8, subsampling=8).layers] == [6, 16, 16, 16]
    assert [layer.input_size for layer in Pyramid(6, 8, subsampling=2, layers=3).layers] == [6, 16, 8]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"subsampling": 3}, "model.subsampling needs to be a power of 2, such as 4, got 3"),
        ({"encoder": "pyramid", "hidden_size": 7}, "a pyramid needs an even model.hidden_size"),
        ({"encoder": "conformer", "convolution_kernel": 4}, "needs an odd number, as many frames to each side, got 4"),
        ({"encoder": "conformer", "norm": "post"}, "model.norm needs to be pre or rms"),
        ({"embedding_size": 6}, "model.embedding_size needs to be None or model.hidden_size"),
        ({"attention": AttentionPart("pointer")}, "copies words of its source, and sound has none"),
    ],
)
def test_settings_that_cannot_be_built_are_errors(settings, message):
    model = AudioToTextModel(**{"hidden_size": 8, "heads": 2, **settings})
    with pytest.raises(ValueError, match=message):
        speech2seq.build(model, AudioDropout(), 6, 9)


def test_an_encoder_names_the_channels_that_it_needs():
    with pytest.raises(ValueError, match=r"built for features of \(batch, time, 6\) .* got \(1, 4, 5\)"):
        ConvolutionalSubsampling(6, 8)(collate_frames([torch.randn(4, 5)]))


def test_the_convolution_module_keeps_the_length():
    module, keep = ConvolutionModule(4, 5), torch.ones(2, 7, dtype=torch.bool)
    assert module(torch.randn(2, 7, 4), keep).shape == (2, 7, 4)


@pytest.mark.parametrize("attention", ["additive", "location_sensitive", "monotonic", "mocha", "local_p", "transformer"])
@pytest.mark.parametrize("decoder", ["recurrent", "transformer"])
def test_every_attention_reads_frames(attention, decoder):
    torch.manual_seed(0)
    model = AudioToTextModel(
        hidden_size=8, heads=2, encoder="pyramid", decoder=decoder, attention=AttentionPart(attention, heads=2)
    )
    network = speech2seq.build(model, AudioDropout(), 6, 9, ctc=True).eval()
    source = collate_frames([torch.randn(12, 6), torch.randn(7, 6)])
    step = network(source, torch.ones(2, 3, dtype=torch.long), weights=True)
    assert step.output.shape == (2, 3, 9)
    labels = network.label(network.read(source))
    torch.testing.assert_close(labels.exp().sum(-1), torch.ones(2, 3))
