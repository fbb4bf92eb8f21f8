import pytest
import torch
from torch.testing import assert_close

from regard.tasks.anomaly.config import AnomalyDropout, AnomalyModel
from regard.tasks.anomaly.layers import Sizes
from regard.tasks.anomaly.model import NETWORKS, Detector, discrepancy, prior_association

from .test_baselines import source

SIZES = Sizes(1, 16, 0, 0)


def build(name, **settings):
    torch.manual_seed(0)
    model = AnomalyModel(name=name, hidden_size=8, feedforward_size=8, heads=2, memory=6, clusters=3, **settings)
    return Detector(model, AnomalyDropout(), SIZES).eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_detector_expects_a_value_for_each_step(name):
    detector, windows = build(name), source(torch.randn(3, 16))
    if name == "memory":
        detector.network.memory.fit(torch.randn(6, 16), torch.arange(6))
    detection = detector(windows, weights=True)
    assert detection.expected.shape == windows.data.shape
    assert detection.weights
    for weights in detection.weights.values():
        assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-3, rtol=0)
    assert_close(detection.expected, detector(windows).expected)
    assert not detector(windows).weights


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_is_trained(name):
    detector, windows = build(name), source(torch.randn(3, 16))
    if name == "memory":
        detector.network.memory.fit(torch.randn(6, 16), torch.arange(6))
    detection = detector(windows)
    loss = (windows.data - detection.expected).square().mean()
    (loss if detection.penalty is None else loss + detection.penalty).backward()
    untrained = [name for name, parameter in detector.named_parameters() if parameter.grad is None]
    assert untrained == []


def test_a_forecast_reads_no_patch_that_it_forecasts():
    detector, windows = build("forecast"), source(torch.randn(1, 16))
    changed = windows._replace(data=windows.data.clone())
    changed.data[:, 8:] += 1
    before, after = detector(windows).expected, detector(changed).expected
    assert_close(before[:, :12], after[:, :12])
    assert not torch.allclose(before[:, 12:], after[:, 12:])


def test_the_score_of_a_step_is_its_squared_error():
    detector, windows = build("reconstruction"), source(torch.randn(2, 16))
    errors = (windows.data - detector(windows).expected).square()[..., 0]
    assert_close(detector.score(windows), errors)


def test_the_score_of_a_window_is_the_root_of_its_mean_error():
    windows = source(torch.randn(2, 16))
    by_step = build("reconstruction").score(windows)
    by_window = build("reconstruction", aggregate="window").score(windows)
    assert_close(by_window, by_step.mean(1, keepdim=True).sqrt().expand_as(by_step))


def test_nothing_observed_is_no_error():
    windows = source(torch.randn(1, 16))
    windows.observed[0, 3] = False
    assert build("reconstruction").score(windows)[0, 3] == 0


def test_the_worst_target_counts_alone():
    sizes = Sizes(2, 16, 0, 0)
    windows = source(torch.randn(1, 16))
    both = windows._replace(data=torch.randn(1, 16, 2), observed=torch.ones(1, 16, 2, dtype=torch.bool))
    scores = {}
    for reduce in ("mean", "max"):
        torch.manual_seed(0)
        detector = Detector(AnomalyModel(hidden_size=8, heads=2, reduce=reduce), AnomalyDropout(), sizes).eval()
        scores[reduce] = detector.score(both)
        errors = (both.data - detector(both).expected).square()
    assert_close(scores["mean"], errors.mean(-1))
    assert_close(scores["max"], errors.amax(-1))


def test_prior_association_is_a_gaussian_of_the_distance():
    widths = torch.zeros(1, 5, 1)
    prior = prior_association(widths, torch.ones(1, 5, dtype=torch.bool))[0, 0]
    sigma = 3.0 ** (0.5 + 1e-5) - 1
    expected = torch.exp(-(torch.arange(5.0) - 2).square() / (2 * sigma**2))
    assert_close(prior[2], expected / expected.sum())


def test_the_discrepancy_is_both_divergences():
    prior, series = torch.tensor([[[[0.5, 0.5]]]]), torch.tensor([[[[0.9, 0.1]]]])
    both = (prior * (prior / series).log()).sum() + (series * (series / prior).log()).sum()
    assert_close(discrepancy(prior, series), both.view(1, 1), atol=2e-3, rtol=0)


def test_minimax_pulls_the_prior_to_the_series_and_the_series_away():
    detector, windows = build("association", layers=1), source(torch.randn(4, 16))

    def measure():
        return float(detector(windows).discrepancy.mean().detach())

    before = measure()
    detector(windows).penalty.backward()
    with torch.no_grad():
        for name, parameter in detector.named_parameters():
            if "widths" in name and parameter.grad is not None:
                parameter -= 0.05 * parameter.grad
    assert measure() < before
    detector.zero_grad()
    before = measure()
    detector(windows).penalty.backward()
    with torch.no_grad():
        for name, parameter in detector.named_parameters():
            if "self_attention" in name and parameter.grad is not None:
                parameter -= 0.05 * parameter.grad
    assert measure() > before


def test_the_association_weighs_errors_within_a_window():
    detector, windows = build("association", temperature=1.0), source(torch.randn(2, 16))
    detection = detector(windows)
    errors = (windows.data - detection.expected).square()[..., 0]
    assert_close(detector.score(windows), torch.softmax(-detection.discrepancy, -1) * 16 * errors)


def test_thresholds_are_by_the_name_of_the_detector():
    detector = build("memory")
    detector.thresholds.copy_(torch.arange(4.0))
    assert [detector.threshold(name) for name in detector.names] == [0, 1, 2, 3]
