import pytest
import torch
from torch.testing import assert_close

from regard.config import AttentionPart
from regard.data.batch import Padded, pad
from regard.tasks.speak.config import SpeakDropout, SpeakModel
from regard.tasks.speak.model import build_speaker

from .conftest import MODEL

SOURCE = pad([[4, 5, 6, 7, 2], [7, 6, 2]])
QUIET = SpeakDropout(embedding=0.0, residual=0.0, prenet=0.5, always=False, convolution=0.0)
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
NETWORKS = [
    *(("tacotron", name) for name in ("location_sensitive", "forward", "gmm", "dynamic_convolution", "additive")),
    ("transformer", "transformer"),
]


def build(network="tacotron", attention="forward", **options):
    torch.manual_seed(0)
    settings = MODEL | {"network": network, "reduction": 2, "feedforward_size": 12} | options
    return build_speaker(SpeakModel(attention=AttentionPart(attention, heads=2), **settings), QUIET, 9, 3).eval()


def target():
    torch.manual_seed(1)
    keep = torch.arange(7)[None] < torch.tensor([[7], [4]])
    return Padded(torch.randn(2, 7, 3).masked_fill(~keep[..., None], 0.0), keep)


@pytest.mark.parametrize(("network", "attention"), NETWORKS)
def test_step_by_step_equals_teacher_forcing(network, attention):
    model, frames = build(network, attention), target()
    taught = model(SOURCE, frames)
    memory = model.decoder.remember(model.encoder(SOURCE))
    state, frame = model.decoder.start(memory), torch.zeros(2, 3)
    for step in range(4):
        result = model.decoder.step(frame, memory, state, weights=True)
        state = result.state
        assert_close(result.output[:, :-1], taught.frames[:, 2 * step : 2 * step + 2].flatten(1), **CLOSE)
        assert_close(result.output[:, -1], taught.stops[:, step], **CLOSE)
        frame = frames.data[:, min(2 * step + 1, 6)]
    assert taught.weights.shape[2:] == (4, 5)


@pytest.mark.parametrize(("network", "attention"), [NETWORKS[0], NETWORKS[-1]])
def test_a_row_is_what_it_would_be_alone_and_every_parameter_learns(network, attention):
    model, frames = build(network, attention), target()
    together = model(SOURCE, frames)
    alone = model(SOURCE.select_rows([1]), frames.select_rows([1]))
    assert_close(together.refined[1:, :4], alone.refined, **CLOSE)
    assert together.keep.sum(1).tolist() == [8, 4]  # whole steps
    assert together.steps.sum(1).tolist() == [4, 2]
    (together.refined.square().mean() + together.stops.mean()).backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]


def test_speech_stops_where_it_is_told_once_the_attention_has_arrived(monkeypatch):
    model = build()
    model.decoder.output.bias.data[-1] = 100.0  # stop at once
    spoken = model.speak(SOURCE, torch.tensor([50, 50]))
    arrived = [
        (row.argmax(-1) >= last - 2).nonzero()[0].item() for row, last in zip(spoken.weights[:, 0], (5, 3), strict=True)
    ]
    assert spoken.steps.sum(1).tolist() == [step + 1 for step in arrived]
    model.decoder.output.bias.data[-1] = -100.0  # never stop
    assert model.speak(SOURCE, torch.tensor([7, 3])).steps.sum(1).tolist() == [7, 3]


def test_the_prenet_drops_out_in_prediction_too_where_it_is_told():
    model = build()
    limits = torch.tensor([4, 4])
    assert_close(model.speak(SOURCE, limits).frames, model.speak(SOURCE, limits).frames)
    model.decoder.prenet.always = True
    model.decoder.output.bias.data[-1] = -100.0
    assert not torch.allclose(model.speak(SOURCE, limits).frames, model.speak(SOURCE, limits).frames)


def test_without_a_postnet_frames_are_as_the_decoder_gives_them():
    spoken = build(postnet_layers=0)(SOURCE, target())
    assert spoken.refined is spoken.frames


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": 0}, "model.reduction needs to be 1 or more frames for each step, got 0"),
        ({"kernel_size": 4}, "model.kernel_size needs to be an odd number, which has a middle, got 4"),
        ({"hidden_size": 7}, "model.hidden_size needs to be even, half for each direction of the encoder, got 7"),
        ({"attention": "none"}, "speak needs an attention over the text, got model.attention=none"),
        ({"attention": "none", "network": "transformer"}, "speak needs an attention over the text"),
    ],
)
def test_models_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
