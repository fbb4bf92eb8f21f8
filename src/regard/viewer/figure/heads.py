"""Every head of every layer, small, on one scale: which of them do something alike, and which do something."""

import dataclasses

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from regard.data.axis import Array
from regard.viewer.figure import maps
from regard.viewer.figure.labels import role
from regard.viewer.figure.style import DPI, GREY, WIDTHS, Drawing, add_metadata
from regard.viewer.figure.subject import Subject, allowed, matrix
from regard.viewer.trace import AttentionMap

ACROSS = 8
"""Heads in a row where there is one layer."""
MARGIN = 0.9
"""Inches for names and the colour bar."""
SMALLEST = 0.42
"""Inches of a head's side: a narrower figure is made as wide as its heads need, up to the width of a page and beyond."""


def draw(subject: Subject, *, vmax: float | None = None) -> Drawing:
    """The heads of all attentions between the same two axes, a layer in a row; all end at the shared maximum, or `vmax`."""
    layers = [attention_map for attention_map in subject.layers if attention_map.weights is not None]
    if not layers:
        matrix(subject.attention_map, None)  # says why there is nothing to draw
    grid = _grid(layers)
    parts = [matrix(attention_map, head) for row in grid for attention_map, head in row]
    highest, lowest = max(float(part.max(initial=0)) for part in parts), min(float(part.min(initial=0)) for part in parts)
    height, width = parts[0].shape
    norm = maps.scale(vmax or highest or 1.0, lowest, max(height, width))
    columns = max(map(len, grid))
    if columns * SMALLEST + MARGIN > subject.width:  # twelve heads in a column of print are specks
        subject = dataclasses.replace(subject, width=max(WIDTHS["page"], columns * SMALLEST + MARGIN))
    side = (subject.width - MARGIN) / columns
    tall = side * min(max(height / max(width, 1), 0.5), 1.5)
    with subject.drawing(max(tall * len(grid) + 0.45, 1.35)) as drawing:
        panels = drawing.subplots(len(grid), columns, squeeze=False)
        images = _panels(panels, grid, subject, norm, "balance" if lowest < 0 else subject.palette)
        _names(panels, grid, several=len(layers) > 1)
        maps.bar(drawing, images[0], list(panels.flat))
        drawing.suptitle(role(subject.attention_map.key, subject.keys, "keys"))
        drawing.supylabel(role(subject.attention_map.query, subject.queries, "queries"))
        drawing.settle()
    title = f"{subject.trace.name}: heads from {subject.attention_map.query} over {subject.attention_map.key}"
    said = f"{len(parts)} heads of {len(layers)} attentions, weights from 0 to the shared maximum {norm.vmax:.3g}"
    description = "; ".join(part for part in (title, said, maps.reduced_to(drawing, images[0], DPI)) if part)
    return add_metadata(drawing, title, description)


def _grid(layers: list[AttentionMap]) -> list[list[tuple[AttentionMap, int]]]:
    """A layer in a row; a single layer in as many rows as it takes."""
    rows = [
        [(attention_map, head) for head in range(0 if attention_map.weights is None else len(attention_map.weights))]
        for attention_map in layers
    ]
    if len(rows) == 1:
        return [rows[0][first : first + ACROSS] for first in range(0, len(rows[0]), ACROSS)]
    return rows


def _panels(
    panels: Array, grid: list[list[tuple[AttentionMap, int]]], subject: Subject, norm: Normalize, palette: str
) -> list[maps.Peaks]:
    images = []
    for line, row in zip(panels, grid, strict=True):
        for panel in line[len(row) :]:
            panel.set_axis_off()
        for panel, (attention_map, head) in zip(line, row, strict=False):
            keep = allowed(attention_map, head, len(subject.queries))
            image = maps.paint(panel, matrix(attention_map, head), keep, palette, norm)
            panel.set_aspect("auto")
            panel.set(xticks=[], yticks=[])
            for spine in panel.spines.values():
                spine.set_edgecolor(GREY)
            images.append(image)
    return images


def _names(panels: Array, grid: list[list[tuple[AttentionMap, int]]], *, several: bool) -> None:
    """Layers beside their rows and heads above their columns; or, of one layer, each head above itself."""
    for row, (line, places) in enumerate(zip(panels, grid, strict=True)):
        if several:
            layer = places[0][0].layer
            name = f"layer {layer}" if row == 0 or len(grid) < 8 else str(layer)
            line[0].set_ylabel(name, rotation="horizontal", ha="right", va="center")
        for panel, (_, head) in zip(line, places, strict=False):
            if not several or row == 0:
                _title(panel, f"head {head}" if len(places) < 7 or not several else str(head) if head else "head 0")


def _title(panel: Axes, text: str) -> None:
    panel.set_title(text, pad=np.float64(2))
