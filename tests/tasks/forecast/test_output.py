import math

import pytest
import torch
from torch import distributions

from regard.tasks.forecast.output import (
    LEVELS,
    OUTPUTS,
    NegativeBinomial,
    Normal,
    Output,
    Points,
    QuantileOutput,
    Scale,
    StudentT,
)

UNIT = Scale(torch.tensor(0.0).double(), torch.tensor(1.0).double())
SHOP = Scale(torch.tensor(3.0).double(), torch.tensor(2.0).double())


def draw_parameters(output, *shape, window=UNIT):
    torch.manual_seed(0)
    return output.shift(torch.randn(*shape, output.size, dtype=torch.float64), window)


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_has_a_loss_a_point_and_perhaps_quantiles_for_each_value(name):
    output = OUTPUTS[name]
    assert isinstance(output, Output)
    parameters = draw_parameters(output, 2, 5, 3).requires_grad_()
    truth = torch.tensor([0.0, 1.0, 2.0]).double().expand(2, 5, 3)
    losses = output.losses(parameters, truth, SHOP)
    assert losses.shape == (2, 5, 3)
    (gradient,) = torch.autograd.grad(losses.sum(), parameters)
    assert gradient.isfinite().all()
    assert output.point(parameters, SHOP).shape == (2, 5, 3)
    quantiles = output.quantiles(parameters.detach(), LEVELS, SHOP)
    if name != "points":
        assert quantiles.shape == (2, 5, 3, 9)
        assert (quantiles.diff(dim=-1) >= 0).all()


@pytest.mark.parametrize("name", ["points", "quantiles", "normal", "student_t"])
def test_a_window_moves_and_stretches_what_is_forecast(name):
    output, window = OUTPUTS[name], Scale(torch.tensor([5.0]).double(), torch.tensor([2.0]).double())
    plain, moved = draw_parameters(output, 4, 1), draw_parameters(output, 4, 1, window=window)
    torch.testing.assert_close(output.point(moved, UNIT), 5 + 2 * output.point(plain, UNIT))
    if name != "points":
        quantiles = [output.quantiles(each, LEVELS, UNIT) for each in (plain, moved)]
        torch.testing.assert_close(quantiles[1], 5 + 2 * quantiles[0])


@pytest.mark.parametrize(("error", "loss"), [("mse", 4.0), ("mae", 2.0), ("huber", 1.5)])
def test_points_are_trained_on_their_error(error, loss):
    assert Points(error).losses(torch.tensor([[3.0]]), torch.tensor([1.0]), UNIT).item() == loss


def test_quantiles_are_trained_on_twice_the_mean_pinball_loss():
    output = QuantileOutput((0.1, 0.9))
    losses = output.losses(torch.tensor([[1.0, 3.0]]), torch.tensor([2.0]), UNIT)
    assert losses.item() == pytest.approx(0.2)


def test_quantiles_that_cross_are_sorted_and_those_between_are_interpolated():
    output = QuantileOutput((0.2, 0.4, 0.8))
    parameters = torch.tensor([4.0, 2.0, 3.0])
    assert output.quantiles(parameters, (0.1, 0.2, 0.3, 0.6, 0.9), UNIT).tolist() == pytest.approx([2, 2, 2.5, 3.5, 4])
    assert output.point(parameters, UNIT).item() == pytest.approx(3.25)
    assert QuantileOutput((0.5,)).point(torch.tensor([7.0]), UNIT).item() == 7


def test_the_likelihood_of_a_normal_distribution_and_its_quantiles():
    parameters, truth = draw_parameters(Normal(), 6), torch.randn(6).double()
    law = distributions.Normal(*parameters.unbind(-1))
    torch.testing.assert_close(Normal().losses(parameters, truth, UNIT), -law.log_prob(truth))
    levels = torch.tensor([0.05, 0.5, 0.9]).double()
    torch.testing.assert_close(Normal().quantiles(parameters, levels.tolist(), UNIT), law.icdf(levels[:, None]).T)


def test_the_likelihood_of_a_student_t_distribution():
    parameters, truth = draw_parameters(StudentT(), 6), torch.randn(6).double()
    location, scale, freedom = parameters.unbind(-1)
    law = distributions.StudentT(freedom, location, scale)
    torch.testing.assert_close(StudentT().losses(parameters, truth, UNIT), -law.log_prob(truth))


@pytest.mark.parametrize("freedom", [2.05, 3.0, 8.0, 200.0])
def test_quantiles_of_a_student_t_distribution_have_their_probability(freedom):
    levels = (0.01, 0.1, 0.5, 0.9, 0.975)
    quantiles = StudentT().quantiles(torch.tensor([0.0, 1.0, freedom]).double(), levels, UNIT)
    for level, quantile in zip(levels, quantiles, strict=True):
        angles = torch.linspace(-math.pi / 2 + 1e-9, float(torch.atan(quantile)), 200_001).double()
        values = angles.tan()
        density = distributions.StudentT(freedom).log_prob(values).exp() * (1 + values**2)
        assert torch.trapezoid(density, angles).item() == pytest.approx(level, abs=1e-4)


def test_a_student_t_distribution_of_many_degrees_of_freedom_is_normal():
    parameters = torch.tensor([0.0, 1.0, 1e9]).double()
    torch.testing.assert_close(StudentT().quantiles(parameters, LEVELS, UNIT), Normal().quantiles(parameters, LEVELS, UNIT))


def test_the_likelihood_of_counts_is_in_original_units():
    output = NegativeBinomial()
    parameters = draw_parameters(output, 5)
    counts = torch.tensor([0.0, 1, 5, 20, 3]).double()
    mean, dispersion = 2 * output.point(parameters, SHOP) + 3, parameters[..., 1]
    law = distributions.NegativeBinomial(1 / dispersion, probs=dispersion * mean / (1 + dispersion * mean))
    torch.testing.assert_close(law.mean, mean)
    torch.testing.assert_close(output.losses(parameters, (counts - 3) / 2, SHOP), -law.log_prob(counts))


def test_quantiles_of_counts_are_the_smallest_that_reach_their_level():
    output = NegativeBinomial()
    parameters = draw_parameters(output, 5)
    levels = (0.1, 0.5, 0.9)
    quantiles = 2 * output.quantiles(parameters, levels, SHOP) + 3
    mean, dispersion = 2 * output.point(parameters, SHOP) + 3, parameters[..., 1]
    law = distributions.NegativeBinomial(1 / dispersion, probs=dispersion * mean / (1 + dispersion * mean))
    cumulative = law.log_prob(torch.arange(2000.0).double()[:, None]).exp().cumsum(0)
    expected = torch.stack([(cumulative < level).sum(0) for level in levels], -1)
    assert torch.equal(quantiles.round().long(), expected)


def test_parameters_that_are_not_finite_have_no_quantiles():
    quantiles = NegativeBinomial().quantiles(torch.tensor([[math.nan, 1.0], [0.0, 1.0]]).double(), (0.5,), SHOP)
    assert quantiles.isnan().flatten().tolist() == [True, False]
