"""Strength figure: four curves of an attention over time, each with its definition."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from regard.data.axis import Array, Axis
from regard.viewer.figure.labels import labels, name_places, role, shown, widths
from regard.viewer.figure.style import GREY, Drawing, add_metadata
from regard.viewer.figure.subject import Subject
from regard.viewer.metrics.strength import Statistics, summary
from regard.viewer.palettes import table

THIN = 16
"""Heads up to which each has a line of its own, beside the mean."""
LEAST = 1 / 16
"""Received attention below this is drawn here, as a triangle."""
RECEIVED = "received: column sum / what uniform attention gives"
SHARPNESS = "sharpness: largest weight; effective keys, exp(entropy)"
FOCUS = "focus: mean key position, ± its spread"


def draw(subject: Subject) -> Drawing:
    """Received attention along the keys; sharpness, focus and sink along the queries. Of several heads the mean is bold."""
    statistics = summary(subject.attention_map, subject.example.axes)
    heads = len(statistics.entropy)
    if subject.head is not None and not 0 <= subject.head < heads:
        raise ValueError(f"{subject.attention_map.name!r} has {heads} heads, counted from 0; asked for head {subject.head}")
    pick = slice(None) if subject.head is None else slice(subject.head, subject.head + 1)
    sinks = "sink: share on " + (_sinks(statistics.sinks, subject.keys) or "special keys, of which there are none")
    with subject.drawing(5.0, sinks) as drawing:
        first, second, third, fourth = drawing.subplots(4)
        _received(first, statistics.received[pick])
        _sharpness(second, statistics, pick, len(subject.keys))
        _focus(third, statistics, pick, len(subject.keys))
        _curves(fourth, statistics.sink[pick])
        fourth.set(ylim=(-0.03, 1.03), ylabel="share")
        for panel, text in ((first, RECEIVED), (second, SHARPNESS), (third, FOCUS), (fourth, sinks)):
            panel.set_title(_wrapped(text, (subject.width - 1.0) * 72), loc="left", linespacing=1.1)
            panel.spines[["top", "right"]].set_visible(False)
        _along(first, subject.keys, subject.attention_map.key, "keys")
        for panel in (second, third, fourth):
            _along(panel, subject.queries, subject.attention_map.query, "queries", named=panel is fourth)
        drawing.align_ylabels([first, second, third, fourth])
        drawing.settle()
    parts = (RECEIVED, SHARPNESS, FOCUS, sinks)
    return add_metadata(drawing, subject.title, "; ".join((subject.title, *parts)))


def _received(panel: Axes, values: Array) -> None:
    """Draw received attention on a logarithmic axis, with a band from a half to twice uniform attention."""
    panel.set_yscale("log", base=2)
    highest = max(4.0, float(np.nanmax(values, initial=1)) * 1.2)
    panel.axhspan(0.5, 2, color="#e8e8e8", zorder=0)
    panel.axhline(1, color=GREY, linewidth=0.5, linestyle=(0, (4, 2)))
    mean = _curves(panel, np.maximum(values, LEAST))
    low = np.flatnonzero(values.mean(0) < LEAST)
    panel.plot(low, np.full(len(low), LEAST), linestyle="none", marker="v", markersize=3, color=mean)
    panel.set(ylim=(LEAST, highest), ylabel="× uniform")
    panel.yaxis.set_major_locator(FixedLocator([float(2**power) for power in range(-4, 13, 2)]))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"1/{1 / value:.0f}" if value < 1 else f"{value:.0f}"))


def _sharpness(panel: Axes, statistics: Statistics, pick: slice, keys: int) -> None:
    """Draw the largest weight on the left axis and effective keys on the right one, in different colours and dashes."""
    blue = _curves(panel, statistics.largest[pick])
    panel.set_ylim(-0.03, max(1.03, float(np.nanmax(statistics.largest[pick], initial=1))))
    panel.set_ylabel("largest", color=blue)
    other = panel.twinx()
    orange = _curves(other, statistics.effective[pick], colour=5, dashes=(0, (3, 1.2)), thin=False)
    other.set_ylim(0, max(2.0, float(np.nanmax(statistics.effective[pick], initial=1)) * 1.1))
    other.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    other.set_ylabel("eff. keys", color=orange)
    other.spines[["top", "left", "bottom"]].set_visible(False)


def _focus(panel: Axes, statistics: Statistics, pick: slice, keys: int) -> None:
    """Draw the mean key of each query, with a band of its standard deviation."""
    middle, spread = _mean(statistics.focus[pick]), _mean(statistics.spread[pick])
    places = np.arange(len(middle))
    colour = table("okabe_ito")[4] / 255
    panel.fill_between(places, middle - spread, middle + spread, color=colour, alpha=0.2, linewidth=0)
    _curves(panel, statistics.focus[pick])
    panel.set(ylim=(-0.5, max(keys - 0.5, 0.5)), ylabel="key")
    panel.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def _curves(panel: Axes, values: Array, colour: int = 4, dashes: object = "-", thin: bool = True) -> Array:
    """Draw the mean of the heads in bold over a thin line for each; return its colour."""
    shade: Array = table("okabe_ito")[colour] / 255
    few = "o" if values.shape[1] < 30 else ""
    if thin and 1 < len(values) <= THIN:
        panel.plot(values.T, color="#b8b8b8", linewidth=0.4, zorder=1)
    panel.plot(_mean(values), color=shade, linewidth=1.0, linestyle=dashes, marker=few, markersize=1.8)
    return shade


def _mean(values: Array) -> Array:
    """The mean over heads; what was recorded of one was recorded of all."""
    return values.mean(0)


def _along(panel: Axes, axis: Axis, name: str, what: str, *, named: bool = True) -> None:
    panel.set_xlim(-0.5, len(axis) - 0.5)
    name_places(panel.xaxis, labels(axis), axis)
    if named:
        panel.set_xlabel(role(name, axis, what))
    else:
        panel.tick_params(labelbottom=False)


def _wrapped(text: str, room: float) -> str:
    """A text in lines of at most so many points: a title that is wider than its panel would push it away."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if widths([longer])[0] > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def _sinks(places: tuple[int, ...], keys: Axis) -> str:
    names = list(dict.fromkeys(shown(keys.labels[place]) for place in places))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
