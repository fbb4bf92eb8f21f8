from importlib import import_module
from pathlib import Path

import pytest
import torch

import regard.tasks.forecast.models as folder
from regard.config import AttentionPart, Dropout
from regard.data.batch import Padded
from regard.data.series.batch import SeriesSource
from regard.errors import ConfigError
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.layers import MovingAverage
from regard.tasks.forecast.model import Forecaster, Network, ReversibleNorm, Sizes
from regard.tasks.forecast.output import OUTPUTS, Points

NAMES = sorted(path.stem for path in Path(folder.__file__).parent.glob("[!_]*.py"))
SIZES = Sizes(targets=2, look_back=12, horizon=4, past=1, known=3, static=(3, 5), output=1)
SMALL = {
    "hidden_size": 8,
    "feedforward_size": 16,
    "layers": 2,
    "heads": 2,
    "patch_length": 4,
    "patch_stride": 2,
    "trend_steps": 5,
}


def draw_source(batch=3, sizes=SIZES, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    time, horizon = sizes.look_back, sizes.horizon
    observed = torch.rand(batch, time, sizes.targets, generator=generator) > 0.1
    static = torch.stack([torch.randint(size, (batch,), generator=generator) for size in sizes.static], 1)
    return SeriesSource(
        draw(batch, time, sizes.targets) * observed,
        torch.ones(batch, time, dtype=torch.bool),
        observed,
        draw(batch, time, sizes.past),
        draw(batch, time + horizon, sizes.known),
        static,
        torch.zeros(batch, sizes.targets),
        torch.ones(batch, sizes.targets),
    )


def draw_target(batch=3, sizes=SIZES):
    data = torch.randn(batch, sizes.horizon, sizes.targets, generator=torch.Generator().manual_seed(9))
    return Padded(data, torch.ones(batch, sizes.horizon, dtype=torch.bool))


def build(name, output="points", sizes=SIZES, norm="window", **settings):
    torch.manual_seed(0)
    model, meaning = ForecastModel(name=name, **(SMALL | settings)), OUTPUTS[output]
    sized = sizes._replace(output=meaning.size)
    network = import_module(f"regard.tasks.forecast.models.{name}").build(model, Dropout(), sized)
    assert isinstance(network, Network)
    return Forecaster(network, ReversibleNorm(sizes.targets, norm), meaning, sized).eval()


def test_every_network_is_a_value_of_the_setting():
    assert set(NAMES) == set(ForecastModel.__dataclass_fields__["name"].type.__args__)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_network_gives_the_numbers_of_its_output_for_every_value(name, output):
    model = build(name, output)
    source, target = draw_source(), draw_target()
    assert model(source).parameters.shape == (3, 4, 2, OUTPUTS[output].size)
    losses = model.train().losses(source, target)
    assert losses.shape == (3, 4, 2)
    losses.mean().backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@pytest.mark.parametrize("name", NAMES)
def test_the_batch_size_changes_no_forecast(name):
    model, source = build(name), draw_source(5)
    whole = model(source).parameters
    for row in range(5):
        torch.testing.assert_close(model(source.select_rows([row])).parameters, whole[[row]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_was_not_observed_might_as_well_not_exist(name):
    model, source = build(name), draw_source()
    changed = source._replace(data=torch.where(source.observed, source.data, 17.0))
    torch.testing.assert_close(model(changed).parameters, model(source).parameters)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("norm", ["window", "last"])
def test_a_shift_of_a_window_shifts_its_forecast(name, norm):
    model, source = build(name, norm=norm), draw_source()
    shifted = source._replace(data=(source.data + 5) * source.observed)
    torch.testing.assert_close(model(shifted).parameters, model(source).parameters + 5, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_forecast_without_a_target_reads_no_target(name):
    model, source = build(name), draw_source()
    first = model(source).parameters
    teacher = model(source, draw_target()).parameters
    torch.testing.assert_close(teacher[:, :1], first[:, :1])
    if name != "recurrent":
        torch.testing.assert_close(teacher, first)


def test_teacher_forcing_reads_the_values_before_and_scheduled_sampling_its_own():
    model, source, target = build("recurrent"), draw_source(), draw_target()
    free, forced, sampled = model(source), model(source, target), model(source, target, 1.0)
    assert not torch.allclose(forced.parameters[:, 1:], free.parameters[:, 1:])
    torch.testing.assert_close(sampled.parameters, free.parameters)
    later = Padded(target.data.clone(), target.keep)
    later.data[:, 2:] += 3
    changed = model(source, later).parameters
    torch.testing.assert_close(changed[:, :3], forced.parameters[:, :3])
    assert not torch.allclose(changed[:, 3:], forced.parameters[:, 3:])


@pytest.mark.parametrize("attention", ["additive", "scaled_dot", "transformer", "local_p", "location_sensitive", "none"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_recurrent_decoder_reads_the_look_back_by_any_attention(attention, cell):
    model = build("recurrent", attention=AttentionPart(attention, heads=2), cell=cell)
    assert model(draw_source()).parameters.isfinite().all()


@pytest.mark.parametrize("self_attention", ["scaled_dot+local", "dilated", "log_sparse", "alibi"])
def test_a_transformer_reads_a_long_look_back_by_a_restricted_self_attention(self_attention):
    model = build("transformer", self_attention=self_attention, attention=AttentionPart("transformer", heads=2))
    assert model(draw_source()).parameters.isfinite().all()


@pytest.mark.parametrize("name", ["patch", "inverted", "transformer"])
def test_norm_may_be_over_the_batch(name):
    model = build(name, norm="window")
    assert any(isinstance(module, torch.nn.LayerNorm) for module in model.modules())
    batch = import_module(f"regard.tasks.forecast.models.{name}").build(
        ForecastModel(**(SMALL | {"norm": "batch"})), Dropout(), SIZES
    )
    assert any(isinstance(module, torch.nn.BatchNorm1d) for module in batch.modules())


def test_padding_before_a_series_is_not_attended_to():
    model, source = build("transformer"), draw_source()
    keep = source.keep.clone()
    keep[:, :5] = False
    padded = source._replace(keep=keep, observed=source.observed & keep[..., None], data=source.data * keep[..., None])
    changed = padded._replace(past=torch.where(keep[..., None], padded.past, 9.0))
    torch.testing.assert_close(model(changed).parameters, model(padded).parameters)


def test_reversible_normalisation_by_hand():
    norm = ReversibleNorm(1)
    values = torch.tensor([[1.0, 3.0, 7.0]])[..., None]
    observed = torch.tensor([[True, True, False]])[..., None]
    scale = norm.measure(values, observed)
    assert (scale.mean.item(), scale.scale.item()) == pytest.approx((2, 1), abs=1e-4)
    with torch.no_grad():
        norm.gain.fill_(2.0)
        norm.bias.fill_(0.5)
    normalised, back = norm.normalise(values, scale), norm.restore(scale)
    torch.testing.assert_close(normalised * back.scale + back.mean, values)


def test_the_last_observed_value_is_taken_off():
    norm = ReversibleNorm(1, "last")
    values = torch.tensor([[1.0, 3.0, 0.0]])[..., None]
    scale = norm.measure(values, torch.tensor([[True, True, False]])[..., None])
    assert (scale.mean.item(), scale.scale.item()) == (3, 1)


def test_another_normalisation_is_refused():
    with pytest.raises(ValueError, match="a reversible normalisation is 'window', 'last' or 'none', got 'layer'"):
        ReversibleNorm(1, "layer")


def test_a_constant_window_is_forecast_finitely():
    source = draw_source()
    constant = source._replace(data=torch.full_like(source.data, 4.0), observed=torch.ones_like(source.observed))
    assert build("patch")(constant).parameters.isfinite().all()


def test_a_patch_longer_than_the_look_back_is_refused():
    with pytest.raises(
        ConfigError, match=r"model\.patch_length=16 needs a look-back of at least as many steps, got data\.look_back=12"
    ):
        build("patch", patch_length=16)


def test_a_moving_average_continues_the_ends():
    values = torch.tensor([1.0, 2, 3, 10])
    assert MovingAverage(3)(values).tolist() == pytest.approx([4 / 3, 2, 5, 23 / 3])
    with pytest.raises(ValueError, match="a moving average needs an odd number of steps, got 4"):
        MovingAverage(4)


def test_a_forecaster_shows_its_output():
    assert "output=Points(error='mse')" in repr(build("linear"))
    assert isinstance(build("linear").output, Points)
