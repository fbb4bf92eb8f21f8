"""Plot of forecasts: history, forecast and interval of each series, and below them why: attention and effects."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import MissingExtraError
from regard.extras import describe_install
from regard.tasks.forecast.explanation import Explanation
from regard.tasks.forecast.forecasts import Forecasts, SeriesForecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 6
"""Most panels of forecasts: series and targets in their order."""
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"


def plot(path: Path, forecasts: Forecasts, explanations: Sequence[Explanation]) -> None:
    """Write the plot as PNG, PDF or SVG."""
    draw(forecasts, explanations).savefig(path, dpi=150)


def draw(forecasts: Forecasts, explanations: Sequence[Explanation]) -> "Figure":
    """A panel for each series and target, its history shaded where the forecast looked; below, why for the first series."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(f"a plot needs matplotlib: {describe_install('view')}") from error

    pairs = [(place, column) for place, each in enumerate(forecasts.series) for column in range(len(each.names))]
    shown = pairs[:MOST]
    figure = Figure(figsize=(9, 1.9 * len(shown) + 4.6), layout="constrained")
    grid = figure.add_gridspec(len(shown) + 2, 2, height_ratios=[*(1.0 for _ in shown), 1.1, 1.1])
    for row, (place, column) in enumerate(shown):
        _forecast(figure.add_subplot(grid[row, :]), forecasts.series[place], column, explanations[place])
    _steps(figure.add_subplot(grid[len(shown), :]), explanations[0])
    _lags(figure.add_subplot(grid[len(shown) + 1, 0]), explanations[0])
    _variables(figure.add_subplot(grid[len(shown) + 1, 1]), explanations[0], forecasts.series[0].names)
    if len(pairs) > MOST:
        figure.suptitle(f"{MOST} of {len(pairs):,} series and targets", fontsize=9, color=GREY)
    return figure


def _forecast(panel: "Axes", forecast: SeriesForecast, column: int, explanation: Explanation) -> None:
    """The look-back, shaded by attention or by effect, then the forecast with its widest interval."""
    steps = explanation.segments[0][0]
    times, values = forecast.record.times, forecast.record.target[:, column]
    past, ahead = _places(times[-steps:]), _places(forecast.times)
    if explanation.attention is None:
        weights, label = explanation.effects, "effect"
    else:
        weights, label = explanation.attention, "attention"
    _shade(panel, past, explanation, weights)
    panel.plot(past, values[-steps:], color="black", linewidth=0.9)
    panel.plot(ahead, forecast.point[:, column], color=BLUE, linewidth=1.3, label="forecast")
    low, high = forecast.quantiles[:, column, 0], forecast.quantiles[:, column, -1]
    share = forecast.levels[-1] - forecast.levels[0]
    if share > 0:
        panel.fill_between(ahead, low, high, color=BLUE, alpha=0.2, linewidth=0, label=f"{share:.0%} interval")
    panel.axvline(past[-1], color=GREY, linewidth=0.6)
    name = forecast.names[column]
    panel.set_title(f"{forecast.record.id}: {name}" if forecast.record.id else name, loc="left", fontsize=9)
    panel.legend(loc="upper left", fontsize=7, frameon=False, title=f"shade: {label} by lag", title_fontsize=7)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.01)


def _shade(panel: "Axes", past: Any, explanation: Explanation, weights: Any) -> None:
    most = float(np.max(weights)) or 1.0
    for (first, last), weight in zip(explanation.segments, weights, strict=True):
        ends = [max(0, len(past) - first), min(len(past) - 1, len(past) - last + 1)]
        if ends[0] < ends[1]:
            panel.axvspan(past[ends[0]], past[ends[1]], color=ORANGE, alpha=0.5 * float(weight) / most, linewidth=0)


def _steps(panel: "Axes", explanation: Explanation) -> None:
    """Heat map of each step of the horizon: its attention, or its change under masking."""
    matrix = explanation.step_effects if explanation.step_attention is None else explanation.step_attention
    name = "effect of masking" if explanation.step_attention is None else "attention"
    image = panel.imshow(matrix, aspect="auto", cmap="YlOrBr", interpolation="nearest", vmin=0)
    panel.figure.colorbar(image, ax=panel, pad=0.01).ax.tick_params(labelsize=7)
    places = np.unique(np.linspace(0, len(explanation.segments) - 1, 5).round().astype(int))
    panel.set_xticks(places, [explanation.times[place] for place in places], fontsize=7)
    panel.set_ylabel("step ahead", fontsize=8)
    steps = np.unique(np.linspace(0, len(matrix) - 1, 5).round().astype(int))
    panel.set_yticks(steps, [str(step + 1) for step in steps], fontsize=7)
    panel.set_title(f"{name} of each step, by time{_of(explanation)}", loc="left", fontsize=9)


def _lags(panel: "Axes", explanation: Explanation) -> None:
    """Attention and effect by lag, each as a share of its sum."""
    lags = [(first + last) / 2 for first, last in explanation.segments]
    wide = 0.8 * abs(explanation.segments[-1][0] - explanation.segments[-1][1] + 1)
    panel.bar(lags, _share(explanation.effects), width=wide, color=GREY, alpha=0.6, label="effect of masking")
    title = "by lag"
    if explanation.attention is not None:
        panel.plot(lags, _share(explanation.attention), color=ORANGE, marker="o", markersize=2.5, label="attention")
        title += f" (rank correlation {explanation.agreement:.2f})"
    panel.invert_xaxis()
    panel.set_xlabel("lag in steps", fontsize=8)
    panel.set_title(title, loc="left", fontsize=9)
    panel.legend(fontsize=7, frameon=False)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def _variables(panel: "Axes", explanation: Explanation, targets: Sequence[str]) -> None:
    """Attention and effect by variable, over all targets."""
    effects = _share(explanation.variable_effects.mean(0))
    order = np.argsort(effects)[-12:]
    places = np.arange(len(order))
    panel.barh(places, effects[order], color=GREY, alpha=0.6, label="effect of masking")
    if explanation.variable_attention is not None:
        shares = _share(explanation.variable_attention.mean(0))
        panel.plot(shares[order], places, "o", color=ORANGE, markersize=3.5, label="attention")
    panel.set_yticks(places, [explanation.variables[place] for place in order], fontsize=7)
    panel.set_title("by variable", loc="left", fontsize=9)
    panel.legend(fontsize=7, frameon=False, loc="lower right")
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def _of(explanation: Explanation) -> str:
    return f" ({explanation.series})" if explanation.series else ""


def _share(values: Any) -> Any:
    return values / (values.sum() or 1.0)


def _places(times: Any) -> Any:
    """Times as matplotlib has them: moments, or plain numbers."""
    return times if times.dtype.kind == "f" else times.astype("datetime64[s]")
