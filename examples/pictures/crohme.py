"""CROHME: the strokes of handwritten formulas, drawn, and the LaTeX of each.

    REGARD_DATA=folder/with/crohme python examples/pictures/crohme.py OUT

writes OUT/pictures/{train,test}/ID.png, grey and white on black as in MNIST: what is around a picture in a batch is black
too (turn a scan of ink on paper round before a model that learned from these reads it). A symbol is some 28 pixels high,
whatever the size of the formula, and one that would not fit into 256 x 1024 pixels is made smaller. OUT/train.tsv, dev.tsv
and test.tsv have image TAB LaTeX, whose tokens have spaces between them: 8,435, 400 and 986 lines.

test is CROHME 2014. dev is taken from the official training set by the SHA-1 of the LaTeX, each formula with all of its
copies: half of that set are formulas that several people wrote, and a dev chosen picture by picture would have half of its
formulas in train too, where test has 30 of 986.
"""

import hashlib
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from folder import given, picture, table
from numpy.typing import NDArray
from PIL import Image, ImageDraw

DEV = 400
SYMBOL = 28
"""The mean height of a symbol, in pixels."""
PEN = 4 / 3
"""The width of a line: about 1/25 of a tall symbol."""
BOX = (256, 1024)
"""The most height and width of a picture."""
MARGIN = 6
FINE = 3
"""Lines are drawn so many times larger, and reduced: that smooths them."""


def main(source: Path, out: Path, dev: int = DEV) -> None:
    """Draw every formula and write the three tables."""
    train = draw_all(source / "train.jsonl.xz", out, "train")
    test = draw_all(source / "test2014.jsonl.xz", out, "test")
    held = hold(Counter(latex for _, latex in train), dev)
    table(out / "train.tsv", (row for row in train if row[1] not in held))
    table(out / "dev.tsv", (row for row in train if row[1] in held))
    table(out / "test.tsv", test)


def draw_all(path: Path, out: Path, part: str) -> list[tuple[str, str]]:
    """The line of a table for each formula."""
    return [(picture(out, f"{part}/{each['id']}", draw(each["strokes"])), each["latex"]) for each in formulas(path)]


def hold(copies: Counter[str], wanted: int) -> set[str]:
    """Formulas of which there are `wanted` pictures together, or as nearly as whole formulas allow."""
    held: set[str] = set()
    for latex in sorted(copies, key=lambda latex: hashlib.sha1(latex.encode()).hexdigest()):
        if copies[latex] <= wanted:
            held.add(latex)
            wanted -= copies[latex]
    return held


def formulas(path: Path) -> Iterator[dict[str, Any]]:
    """What a file of them holds: id, latex, and strokes as [x0, y0, x1, y1, ...]."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def draw(strokes: list[list[int]]) -> Image.Image:
    """A formula, its proportions kept."""
    paths = [np.array(stroke, dtype=float).reshape(-1, 2) for stroke in strokes]
    every = np.concatenate(paths)
    corner, extent = every.min(0), np.ptp(every, axis=0)
    height, width = (side - 2 * MARGIN for side in BOX)
    scale = min(SYMBOL / symbol_height(paths), width / max(extent[0], 1), height / max(extent[1], 1))
    wide, high = (int(np.ceil((side * scale).round(6))) + 2 * MARGIN for side in extent)  # 244.0000001 is 244
    canvas = Image.new("L", (wide * FINE, high * FINE))
    pen = ImageDraw.Draw(canvas)
    for path in paths:
        trace(pen, ((path - corner) * scale + MARGIN) * FINE)
    return canvas.reduce(FINE)


def symbol_height(paths: list[NDArray[np.float64]]) -> float:
    """The mean height of the strokes that say how large somebody writes: not of bars, minus signs and dots.

    Which strokes make up a symbol is not known, and need not be: on one line of digits and letters this is 0.8 times the
    height of the tall ones, with a deviation of 12 %.
    """
    width, height = np.array([np.ptp(path, axis=0) for path in paths]).T
    telling = (height > width / 3) & (height > height.max() / 10)
    found = height[telling] if telling.any() else np.maximum(width, height)
    return max(float(found.mean()), 1.0)


def trace(pen: ImageDraw.ImageDraw, path: NDArray[np.float64]) -> None:
    """One stroke, round at its ends and turns; a dot is twice as wide as the pen, as it would be lost otherwise."""
    wide = round(PEN * FINE)
    if np.ptp(path, axis=0).max() < 2 * wide:
        pen.circle(tuple(path.mean(0)), wide, fill=255)
        return
    points = [tuple(point) for point in path.round()]
    pen.line(points, fill=255, width=wide)
    for point in points:
        pen.circle(point, wide / 2 - 0.5, fill=255)


if __name__ == "__main__":
    main(*given("crohme"))
