from importlib import import_module

import pytest
import torch

from regard.config import Dropout
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.model import ReversibleNorm
from regard.tasks.forecast.output import OUTPUTS, Points

from .networks import NAMES, SIZES, SMALL, build, draw_source, draw_target


def test_every_network_is_a_value_of_the_setting():
    assert set(NAMES) == set(ForecastModel.__dataclass_fields__["network"].type.__args__)


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


@pytest.mark.parametrize("name", ["patch", "inverted", "transformer"])
def test_norm_may_be_over_the_batch(name):
    model = build(name, norm="window")
    assert any(isinstance(module, torch.nn.LayerNorm) for module in model.modules())
    batch = import_module(f"regard.tasks.forecast.models.{name}").build(
        ForecastModel(**(SMALL | {"norm": "batch"})), Dropout(), SIZES
    )
    assert any(isinstance(module, torch.nn.BatchNorm1d) for module in batch.modules())


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


def test_a_forecaster_shows_its_output():
    assert "output=Points(error='mse')" in repr(build("linear"))
    assert isinstance(build("linear").output, Points)
