import sys

import pytest

from regard.errors import MissingExtraError
from regard.tasks.forecast.plot import MOST, draw


def reasons(predictor, table):
    windows = predictor.encode([str(table)])
    return predictor.forecast(table), predictor.explain_windows(windows)


def test_a_plot_has_a_panel_for_each_series_and_target_and_the_reasons(predictor, future):
    figure = draw(*reasons(predictor, future))
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    assert titles[:4] == ["a: sales", "a: visits", "b: sales", "b: visits"]
    assert "effect of masking of each step, by time (a)" in titles
    assert any(title.startswith("by lag (rank correlation") for title in titles)
    forecast = figure.axes[0].lines[1]
    assert len(forecast.get_ydata()) == 5


def test_a_plot_of_many_series_says_how_many_it_shows(predictor, future):
    forecasts, explanations = reasons(predictor, future)
    many = type(forecasts)(forecasts.series * 3, forecasts.time, forecasts.id)
    figure = draw(many, explanations * 3)
    assert figure.get_suptitle() == f"{MOST} of 12 series and targets"


def test_a_plot_without_matplotlib_says_how_to_install_it(predictor, future, monkeypatch):
    forecasts, explanations = reasons(predictor, future)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"a plot needs matplotlib: pip install 'regard\[view\]'"):
        draw(forecasts, explanations)
