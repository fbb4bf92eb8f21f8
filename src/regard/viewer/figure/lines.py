"""The strongest links between two sequences, as lines: wide and dark where attention is strong."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke

from regard.data.axis import Array, Axis, Text
from regard.viewer.figure.fonts import enough
from regard.viewer.figure.labels import LEADING, POINTS, labels, name_places, role, widths
from regard.viewer.figure.style import Drawing, add_metadata
from regard.viewer.figure.subject import Subject
from regard.viewer.palettes import table

STRONGEST = 2
FAINT = 0.02
"""Links of less than this share of the strongest are not drawn."""
HARD = 0.5
"""A link with more of a query's attention than this is outlined."""
LONGEST = 8.5
"""Inches."""


class Link(NamedTuple):
    """A line from a query to a key."""

    query: int
    key: int
    weight: float


def draw(subject: Subject, *, strongest: int = STRONGEST, upright: bool | None = None) -> Drawing:
    """Keys above queries where both fit side by side, else (or `upright`) queries at the left and keys at the right.

    Only the `strongest` links of each query are drawn. A query's link that has more than half of its attention is outlined.
    """
    if strongest < 1:
        raise ValueError(f"lines shows at least the strongest link of each query, asked for {strongest}")
    matrix = subject.matrix
    names = labels(subject.queries)
    queries, keys = [names[row] for row in subject.rows], labels(subject.keys)
    spread = [_spread(text, axis) for text, axis in ((queries, subject.queries), (keys, subject.keys))]
    fits = max(label.width for label in spread) <= (subject.width - 0.7) * 72
    pairs = links(matrix, strongest)
    stand = upright or (upright is None and not fits)
    tall = min(max(len(queries), len(keys)) * POINTS * LEADING / 72 + 0.35, LONGEST) if stand else 1.25
    with subject.drawing(tall) as drawing:
        if stand:
            _columns(drawing.add_subplot(), subject, queries, keys, pairs)
        else:
            _rows(drawing.add_subplot(), subject, (queries, keys), spread, pairs)
        drawing.settle()
    said = f"{subject.title}; the {strongest} strongest keys of each query, wide and dark by weight, above {HARD:g} outlined"
    return add_metadata(drawing, subject.title, said)


def links(matrix: Array, strongest: int) -> list[Link]:
    """The strongest keys of each query, weakest first, so that strong lines lie on top."""
    floor = FAINT * float(matrix.max(initial=0))
    pairs = []
    for query, row in enumerate(matrix):
        best = np.argsort(-row, kind="stable")[:strongest]
        pairs += [Link(query, int(key), float(row[key])) for key in best if row[key] > floor]
    return sorted(pairs, key=lambda link: link.weight)


class _Spread(NamedTuple):
    """Positions of words in a line of text, and its length, in points."""

    middles: Array
    width: float


def _spread(words: list[str], axis: Axis) -> _Spread:
    word_widths = widths(words, axis.lang if isinstance(axis, Text) else None)
    starts = np.concatenate([[0], np.cumsum(word_widths + POINTS * 0.7)])
    return _Spread(starts[:-1] + word_widths / 2, float(starts[-1] - POINTS * 0.7) if len(word_widths) else 0.0)


def _rows(
    axes: Axes, subject: Subject, words: tuple[list[str], list[str]], spread: list[_Spread], pairs: list[Link]
) -> None:
    """Keys in a line above, queries in a line below, each spread over the whole width."""
    room = (subject.width - 0.7) * 72
    axes.set(xlim=(0, room), ylim=(-0.3, 1.3), xticks=[], yticks=[0, 1])
    axes.set_yticklabels(
        [f"{subject.attention_map.query}\n(queries)", f"{subject.attention_map.key}\n(keys)"], linespacing=1.0
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    places = []
    for label in spread:
        slack = (room - label.width) / max(len(label.middles), 1)
        places.append(label.middles + slack * (np.arange(len(label.middles)) + 0.5))
    for line, axis, height in ((0, subject.queries, 0.0), (1, subject.keys, 1.0)):
        lang = axis.lang if isinstance(axis, Text) else None
        family = enough("".join(words[line]), lang)
        for word, place in zip(words[line], places[line], strict=True):
            axes.text(place, height, word, ha="center", va="bottom" if line else "top", family=family)
    for link in pairs:
        start, end = (places[0][link.query], 0.03), (places[1][link.key], 0.97)
        _line(axes, Path([start, (start[0], 0.5), (end[0], 0.5), end], CURVE), link, subject.palette)


def _columns(axes: Axes, subject: Subject, queries: list[str], keys: list[str], pairs: list[Link]) -> None:
    """Queries down the left side, keys down the right one, both as long as the figure is high."""
    other = axes.twinx()
    for side, words, axis in ((axes, queries, subject.queries), (other, keys, subject.keys)):
        side.set_ylim(len(words) - 0.5, -0.5)
        name_places(side.yaxis, words, axis)
        side.tick_params(length=0)
        side.spines[:].set_visible(False)
    axes.set(xlim=(0, 1), xticks=[])
    axes.set_ylabel(role(subject.attention_map.query, subject.queries, "queries"))
    other.set_ylabel(role(subject.attention_map.key, subject.keys, "keys"))
    for link in pairs:
        start = (0.02, (link.query + 0.5) / len(queries))
        end = (0.98, (link.key + 0.5) / len(keys))
        middle = len(queries)
        path = [(start[0], start[1]), (0.5, start[1]), (0.5, end[1]), end]
        _line(axes, Path([(x, y * middle - 0.5) for x, y in path], CURVE), link, subject.palette)


CURVE = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]


def _line(axes: Axes, path: Path, link: Link, palette: str) -> None:
    """One link. Lines on white take the darker half of the palette, so that the strong ones are the dark ones."""
    part = min(max(link.weight, 0.0), 1.0)
    colour = table(palette)[40] / 255
    line = PathPatch(
        path, facecolor="none", edgecolor=colour, linewidth=0.3 + 2.7 * part, alpha=0.15 + 0.85 * part, capstyle="round"
    )
    if link.weight > HARD:
        line.set_path_effects([Stroke(linewidth=0.3 + 2.7 * part + 1.2, foreground="black", alpha=0.35), Normal()])
    axes.add_patch(line)
