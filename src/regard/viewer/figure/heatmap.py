"""One attention as a heat map: queries down, keys across, keys named on top."""

import numpy as np
from matplotlib.axes import Axes

from regard.data.axis import Array
from regard.viewer.figure import maps
from regard.viewer.figure.labels import POINTS, Thinned, labels, name_places, role, widest
from regard.viewer.figure.style import DPI, Drawing, add_metadata
from regard.viewer.figure.subject import Subject
from regard.viewer.palettes import table

NUMBERS = 12
"""Cells a side up to which numbers can be read."""
TALLEST = {False: 4.5, True: 8.0}
"""Inches, for a column and for a page."""


def draw(subject: Subject, *, numbers: bool = False, vmax: float | None = None, title: str = "") -> Drawing:
    """The heat map. `numbers` writes each weight into its cell, `vmax` ends the scale elsewhere than at 1."""
    matrix, allowed = subject.matrix, subject.allowed
    if numbers and max(matrix.shape) > NUMBERS:
        raise ValueError(
            f"numbers can be read up to {NUMBERS} x {NUMBERS} cells, this has {matrix.shape[0]} x {matrix.shape[1]}; "
            "leave numbers out"
        )
    lowest, highest = float(matrix.min(initial=0)), float(matrix.max(initial=0))
    norm = maps.scale(vmax or max(1.0, highest), lowest, max(matrix.shape))
    with subject.drawing(1.0, title) as drawing:
        axes = drawing.add_subplot()
        image = maps.paint(axes, matrix, allowed, "balance" if lowest < 0 else subject.palette, norm)
        rows, columns = name_axes(axes, subject)
        bar = maps.bar(drawing, image, [axes])
        if title:
            axes.set_title(title)
        if numbers:
            _numbers(axes, image, matrix, allowed)
        drawing.set_figheight(_height(subject, rows, columns, bool(title)))
        _settle(drawing, axes, TALLEST[subject.page])
        maps.thin(bar)
    description = f"attention weights from 0 to {norm.vmax:g}, queries down, keys across"
    parts = [subject.title, description, maps.reduced_to(drawing, image, DPI)]
    return add_metadata(drawing, subject.title, "; ".join(part for part in parts if part))


def name_axes(axes: Axes, subject: Subject) -> tuple[Thinned, Thinned]:
    """Name queries on the left and keys on top, and say which is which."""
    names = labels(subject.queries)
    rows = name_places(axes.yaxis, [names[row] for row in subject.rows], subject.queries)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    columns = name_places(axes.xaxis, labels(subject.keys), subject.keys)
    axes.set_xlabel(role(subject.attention_map.key, subject.keys, "keys"))
    axes.set_ylabel(role(subject.attention_map.query, subject.queries, "queries"))
    return rows, columns


def _height(subject: Subject, rows: Thinned, columns: Thinned, titled: bool) -> float:
    """So high that the map fills the width with square cells, within what a page has room for."""
    across = widest(columns.names, columns.lang) / 72
    top = (across * 0.71 if columns.angle else 0.15) + (0.45 if titled else 0.3)
    left = min(widest(rows.names, rows.lang) / 72, 1.4) + 0.3
    height, width = subject.matrix.shape
    room = subject.width - left - 0.55
    ratio = height / max(width, 1)
    if max(height, width) >= maps.EQUAL:
        ratio = min(max(ratio, 0.4), 1.25)
    return max(min(room * ratio, TALLEST[subject.page]), 1.0) + top


def _settle(drawing: Drawing, axes: Axes, tallest: float) -> None:
    """Take away, or add, the height by which square cells and the room for them differ once labels are laid out."""
    drawing.settle()
    if axes.get_aspect() == "auto":
        return
    for _ in range(3):
        room, filled, tall = axes.get_position(original=True), axes.get_position(), drawing.get_figheight()
        with drawing.quiet():
            around = (axes.get_tightbbox() or drawing.bbox).height / drawing.dpi + 0.04
        short = min(tall * filled.height * (room.width / filled.width), tallest) - tall * filled.height
        if abs(around + short - tall) < 0.02:
            break
        drawing.set_figheight(around + short)
        drawing.settle()


def _numbers(axes: Axes, image: maps.Peaks, matrix: Array, allowed: Array | None) -> None:
    """Write each weight into its cell, dark on light and light on dark."""
    light = table(image.get_cmap().name) @ [0.2126, 0.7152, 0.0722] > 127
    for (row, column), weight in (
        ((place // matrix.shape[1], place % matrix.shape[1]), weight) for place, weight in enumerate(matrix.flat)
    ):
        if allowed is None or allowed[row, column]:
            part = min(max(float(np.asarray(image.norm(weight))), 0.0), 1.0)
            colour = "black" if light[min(255, int(part * 256))] else "white"
            text = f"{weight:.2f}".replace("0.", ".", 1) if abs(weight) < 1 else f"{weight:.0f}"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=POINTS - 2.5)
