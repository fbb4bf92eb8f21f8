"""Names of places along an axis: what is printed of a token, and as many of them as fit without touching."""

import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axis import Axis as Ruler
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, Locator

from regard.data.axis import Array, Audio, Axis, Series, Text
from regard.viewer.figure.fonts import enough

POINTS = 8
"""The size of all text."""
LONGEST = 20
"""Characters of a label that are printed."""
GAP = 3.0
"""Points between two labels."""
LEADING = 1.2
"""From one line of text to the next, in heights of the letters."""
NICE = (1, 2, 5)
SPANS = [*(minutes * 60 for minutes in (1, 5, 10, 30)), *(hours * 3600 for hours in (1, 2, 3, 6, 12))]
SPANS += [days * 86400 for days in (1, 2, 4, 7, 14, 28, 56, 91, 182, 364, 728, 1820, 3640)]
"""Seconds between two dates that are named."""
SIGNS = {"\n": "↵", "\t": "→", "\r": "↵", "": "∅"}


def shown(label: str, longest: int = LONGEST) -> str:
    """A token as it is printed: blanks and controls made visible, long ones cut."""
    if not label.strip(" \u3000") and label:
        return "␣" * min(len(label), 3)
    text = "".join(SIGNS.get(letter) or _visible(letter) for letter in label) or SIGNS[""]
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _visible(letter: str) -> str:
    """Controls and halves of pairs as numbers: no font has them, and an SVG that held them could not be read."""
    invisible = (
        unicodedata.category(letter) in ("Cc", "Cs", "Co", "Zl", "Zp")
        or "\u202a" <= letter <= "\u202e"
        or "\u2066" <= letter <= "\u2069"
    )
    return f"[{ord(letter):X}]" if invisible else letter


def labels(axis: Axis) -> list[str]:
    """Labels of the places of an axis in a figure: dates no finer than they differ, seconds without their unit."""
    if isinstance(axis, Audio):
        return [f"{place * axis.seconds_per_step:g}" for place in range(len(axis))]
    if isinstance(axis, Series) and axis.dates and len(axis):
        return dates(np.asarray(axis.times, np.float64))
    return [shown(label) for label in axis.labels]


def dates(times: Array) -> list[str]:
    """Seconds since 1970 as dates, with the time of day only where there is one."""
    moments = np.round(times).astype("int64").astype("datetime64[s]")
    if not (np.round(times) % 86400).any():
        return [str(moment)[:10] for moment in moments]
    if not (np.round(times) % 60).any():
        return [str(moment)[5:16].replace("T", " ") for moment in moments]
    return [str(moment)[11:] for moment in moments]


def role(name: str, axis: Axis, what: str) -> str:
    """An axis' title: its name and its role, "source (keys)", and its unit where it has one."""
    return f"{shown(name)} ({what}){', s' if isinstance(axis, Audio) else ''}"


def widths(texts: Sequence[str], lang: str | None = None) -> Array:
    """Width of each text in points: the sum of its letters, each measured once."""
    family = tuple(enough("".join(texts), lang))
    lines = [max(sum(_advance(letter, family) for letter in line) for line in text.split("\n")) for text in texts]
    return np.array(lines, np.float64)


@cache
def _advance(letter: str, family: tuple[str, ...]) -> float:
    """From one letter to the next: the difference that eight more of it make."""
    font = FontProperties(family=list(family), size=POINTS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"(?s)Glyph \d+ ")  # told of once, by the figure
        one, nine = (text_to_path.get_text_width_height_descent(letter * count, font, False)[0] for count in (1, 9))
    return float(nine - one) / 8


def widest(texts: Sequence[str], lang: str | None = None) -> float:
    """Width of the widest text in points; only those of the most letters are measured."""
    longest = sorted(set(texts), key=lambda text: sum(1 + wide(letter) for letter in text))[-12:]
    return float(max(widths(longest, lang), default=0.0))


def wide(text: str) -> bool:
    """Return True if a text has square characters, which may stand above one another."""
    return bool(text) and all(unicodedata.east_asian_width(letter) in "WF" for letter in text)


class Thinned(Locator):
    """Ticks at every place, or every n-th, such that labels never touch.

    Which labels fit depends on the room, and the room on the labels. So a figure begins with as many as there can be, lays
    itself out, and takes away until they fit: see `Drawing.settle`.
    """

    def __init__(self, names: Sequence[str], *, axis: Axis | None, across: bool):
        self.names = list(names)
        self.lang = axis.lang if isinstance(axis, Text) else None
        self.across = across
        self.angle = 45 if across and isinstance(axis, Text) and _alphabetic(self.names) else 0
        self.upright = ["\n".join(name) if wide(name) else name for name in self.names]
        if across and not self.angle:
            self.room, self.narrow = widths(self.names, self.lang) + GAP, widths(self.upright, self.lang) + GAP
        else:
            self.room = self.narrow = np.full(len(self.names), POINTS * (1.05 * np.sqrt(2) if across else LEADING))
        self.ways = [(1, False), (1, True), *((step, False) for step in _steps(len(self.names), axis) if step > 1)]
        self.way = 0

    def __call__(self) -> list[float]:
        """The places that have a label."""
        low, high = self._view()
        return [float(place) for place in range(0, len(self.names), self.ways[self.way][0]) if low <= place <= high]

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Every place between two limits."""
        return [float(place) for place in range(len(self.names)) if vmin <= place <= vmax]

    def label(self, value: float, place: int | None = None) -> str:
        """The label of a place."""
        number = round(value)
        if not 0 <= number < len(self.names):
            return ""
        return self.upright[number] if self.ways[self.way][1] else self.names[number]

    def begin(self) -> None:
        """Show as many labels as would fit if the plot filled the whole figure."""
        self.way = 0
        self.thin(whole=True)

    def thin(self, whole: bool = False) -> bool:
        """Take labels away until they fit; whether any had to go."""
        before, cell = self.way, self._cell(whole)
        while self.way < len(self.ways) - 1 and not self._fits(cell):
            self.way += 1
        return self.way > before

    def _fits(self, cell: float) -> bool:
        step, upright = self.ways[self.way]
        taken = (self.narrow if upright else self.room)[::step]
        return len(taken) < 2 or bool(((taken[:-1] + taken[1:]) / 2 <= step * cell).all())

    def _cell(self, whole: bool) -> float:
        """The size of a place, in points."""
        assert isinstance(self.axis, Ruler), "ticks are placed on an axis of a plot"
        figure = self.axis.axes.get_figure(root=True)
        assert figure is not None
        box = figure.bbox if whole else self.axis.axes.bbox
        low, high = self._view()
        return float((box.width if self.across else box.height) * 72 / figure.dpi / max(high - low, 1e-9))

    def _view(self) -> tuple[float, float]:
        assert self.axis is not None
        low, high = sorted(self.axis.get_view_interval())
        return float(low), float(high)


def name_places(ruler: Ruler, names: Sequence[str], axis: Axis | None = None, *, top: bool = False) -> Thinned:
    """Label the places 0, 1, 2, ... of an axis of a plot."""
    across = ruler.axis_name == "x"  # type: ignore[attr-defined]  # every axis has one; the stubs leave it out
    ticks = Thinned(names, axis=axis, across=across)
    ruler.set_major_locator(ticks)
    ruler.set_major_formatter(FuncFormatter(ticks.label))
    style: dict[str, Any] = {"labelfontfamily": enough("".join(ticks.names), ticks.lang)}
    if ticks.angle:
        style |= {"labelrotation": ticks.angle, "labelrotation_mode": "xtick"}
    ruler.set_tick_params(**style)
    return ticks


def _alphabetic(names: Sequence[str]) -> bool:
    """Return True if labels are alphabetic words, which are slanted; not where any is in Chinese, Japanese or Korean."""
    return any(len(name) > 2 and name[0].isalpha() for name in names) and not any(wide(name) for name in names)


def _steps(count: int, axis: Axis | None) -> list[int]:
    """Every how many places labels may stand: any number of words, but round numbers, and whole hours or days."""
    if isinstance(axis, Text):
        return list(range(1, count + 1))
    if isinstance(axis, Series) and axis.dates and count > 1:
        steps = np.diff(np.asarray(axis.times, np.float64))
        spans = [span / steps[0] for span in SPANS if steps[0] > 0 and np.allclose(steps, steps[0])]
        return [1, *(round(span) for span in spans if span > 1 and abs(span - round(span)) < 1e-6)]
    return [first * 10**power for power in range(len(str(count)) + 1) for first in NICE]
