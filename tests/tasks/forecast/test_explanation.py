import json

import numpy as np
import pytest
import torch

from regard.tasks.forecast.explanation import (
    explain,
    rank_correlation,
    segment_bounds,
    spread_patches,
    write_json,
)

from .networks import build as build_network
from .tables import build


@pytest.fixture(scope="module")
def experiments(sales):
    networks = {"linear": [], "inverted": [], "recurrent": [], "transformer": [], "temporal_fusion": [], "patch": []}
    return {name: build(sales, f"model.network={name}")[0] for name in networks}


@pytest.mark.parametrize("name", ["linear", "inverted", "recurrent", "transformer", "temporal_fusion", "patch"])
def test_a_forecast_is_explained_by_lag_and_by_variable(experiments, name):
    experiment = experiments[name]
    explanation = explain(experiment.model.eval(), experiment.valid[0], experiment.codec)
    assert explanation.segments[0][0] == 14
    assert explanation.segments[-1][1] == 1
    assert len(explanation.effects) == len(explanation.segments) == len(explanation.times)
    assert explanation.step_effects.shape == (5, len(explanation.segments))
    assert explanation.variables[:3] == ("sales", "visits", "promotion")
    assert explanation.variable_effects.shape == (2, len(explanation.variables))
    if explanation.attention is not None:
        assert explanation.attention.sum() == pytest.approx(1)
        assert -1 <= explanation.agreement <= 1
    assert (explanation.attention is None) == (name in ("linear", "inverted"))
    assert (explanation.step_attention is not None) == (name in ("recurrent", "transformer", "temporal_fusion"))
    assert (explanation.variable_attention is not None) == (name in ("inverted", "temporal_fusion"))


def test_what_a_network_does_not_read_has_no_effect(experiments):
    """A linear map that reads the last two steps alone: masking any other changes nothing."""
    experiment = experiments["linear"]
    network = experiment.model.network
    with torch.no_grad():
        for layer in (network.trend, network.rest):
            layer.weight.zero_()
            layer.bias.zero_()
        network.rest.weight[:, -2:] = 1
        network.trend.weight[:, -2:] = 1
    explanation = explain(experiment.model.eval(), experiment.valid[0], experiment.codec)
    used = [first <= 2 for first, _ in explanation.segments]
    assert (explanation.effects[np.array(used)] > 0).all()
    assert explanation.effects[~np.array(used)] == pytest.approx(0, abs=1e-5)
    off_diagonal = explanation.variable_effects[:, :2][~np.eye(2, dtype=bool)]
    assert off_diagonal == pytest.approx(0, abs=1e-5)


def test_weights_of_patches_are_spread_over_the_steps_that_they_cover():
    model = build_network("patch")
    spread = spread_patches(np.array([[1.0, 0, 0, 0, 0, 2]]), model, 12)
    assert spread[0, :4] == pytest.approx(0.25)
    assert spread[0, 10:] == pytest.approx(1.0)  # the last patch goes on past the end
    assert spread.sum() == pytest.approx(3)


def test_segments_are_of_whole_patches_and_few():
    assert segment_bounds(12, 4) == [(0, 4), (4, 8), (8, 12)]
    assert segment_bounds(10, 4) == [(0, 2), (2, 6), (6, 10)]
    assert len(segment_bounds(10_000, 1)) <= 24


def test_rank_correlation_has_mean_ranks_for_ties():
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([10.0, 20, 90])) == 1
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([3.0, 2, 1])) == -1
    assert rank_correlation(np.array([1.0, 1, 2]), np.array([5.0, 5, 7])) == 1
    assert rank_correlation(np.array([1.0, 1, 1]), np.array([5.0, 6, 7])) == 0


def test_an_explanation_is_written_as_json(experiments, tmp_path):
    experiment = experiments["temporal_fusion"]
    explanation = explain(experiment.model.eval(), experiment.valid[0], experiment.codec)
    write_json(tmp_path / "why.json", [explanation], experiment.codec.names.target)
    [table] = json.loads((tmp_path / "why.json").read_text())
    assert sum(row["attention"] for row in table["by_lag"]) == pytest.approx(1)
    assert table["by_variable"][2]["variable"] == "promotion"
    assert table["by_variable"][2]["effect"].keys() == {"sales", "visits"}
    assert len(table["by_step"]["attention"]) == 5
    assert table["agreement"] == explanation.agreement
