"""CROHME: the strokes of handwritten formulas, drawn, and the LaTeX of each.

    REGARD_DATA=folder/with/crohme python examples/pictures/crohme.py OUT

writes OUT/pictures/{train,test}/ID.png, grey and white on black as in MNIST: what is around a picture in a batch is black
too (turn a scan of ink on paper round before a model that learned from these reads it). A symbol is some 28 pixels high,
whatever the size of the formula, and one that would not fit into 256 x 1024 pixels is made smaller. OUT/train.tsv, dev.tsv
and test.tsv have image TAB LaTeX, whose tokens have spaces between them: 8,435, 400 and 986 lines.

With COPIES=8 in the environment each formula of train.tsv is there eight times more, written again a little differently
(rewritten.py), as pictures/train/ID-1.png and so on.

test is CROHME 2014. dev is taken from the official training set by the SHA-1 of the LaTeX, each formula with all of its
copies: half of that set are formulas that several people wrote, and a dev chosen picture by picture would have half of its
formulas in train too, where test has 30 of 986.
"""

import hashlib
import json
import lzma
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from folder import given, picture, table
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from rewritten import rewritten

Formula = dict[str, Any]
"""Its id, latex, and strokes."""

DEV = 400
SYMBOL = 28
"""The mean height of a symbol, in pixels."""
PEN = 4 / 3
"""The width of a line: about 1/25 of a tall symbol."""
BOX = (256, 1024)
"""The most height and width of a picture."""
PENS = 0.75, 1.5
"""How much finer or broader the pen is that writes a formula again."""
MARGIN = 6
FINE = 3
"""Lines are drawn so many times larger, and reduced: that smooths them."""


def main(source: Path, out: Path, dev: int = DEV, copies: int = 0) -> None:
    """Draw every formula, on all cores, and write the three tables."""
    found = list(formulas(source / "train.jsonl.xz"))
    held = hold(Counter(each["latex"] for each in found), dev)
    learned, judged = ([each for each in found if (each["latex"] in held) is kept] for kept in (False, True))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for part, chosen, more in (("train", learned, copies), ("dev", judged, 0), ("test", test_set(source), 0)):
            folder = "test" if part == "test" else "train"
            drawn = pool.map(partial(draw_all, out, folder, more), chosen, chunksize=64)
            table(out / f"{part}.tsv", [row for rows in drawn for row in rows])


def test_set(source: Path) -> list[Formula]:
    """CROHME 2014."""
    return list(formulas(source / "test2014.jsonl.xz"))


def draw_all(out: Path, part: str, copies: int, each: Formula) -> list[tuple[str, str]]:
    """The line of a table for a formula, and for so many more pictures of it; which they are follows from its id."""
    seed = int.from_bytes(hashlib.sha1(each["id"].encode()).digest()[:8], "big")
    drawn = {"": draw(each["strokes"])}
    drawn |= {f"-{number}": draw(each["strokes"], (seed, number)) for number in range(1, copies + 1)}
    return [(picture(out, f"{part}/{each['id']}{ending}", image), each["latex"]) for ending, image in drawn.items()]


def hold(copies: Counter[str], wanted: int) -> set[str]:
    """Formulas of which there are `wanted` pictures together, or as nearly as whole formulas allow."""
    held: set[str] = set()
    for latex in sorted(copies, key=lambda latex: hashlib.sha1(latex.encode()).hexdigest()):
        if copies[latex] <= wanted:
            held.add(latex)
            wanted -= copies[latex]
    return held


def formulas(path: Path) -> Iterator[Formula]:
    """What a file of them holds: id, latex, and strokes as [x0, y0, x1, y1, ...]."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def draw(strokes: list[list[int]], again: tuple[int, int] | None = None) -> Image.Image:
    """A formula, its proportions kept; with `again`, which is a seed, written another time, with another pen."""
    paths = [np.array(stroke, dtype=float).reshape(-1, 2) for stroke in strokes]
    paths = [path * SYMBOL / symbol_height(paths) for path in paths]
    pen = PEN
    if again is not None:
        chance = np.random.default_rng(again)
        paths, pen = rewritten(paths, chance), PEN * float(chance.uniform(*PENS))
    every = np.concatenate(paths)
    corner, extent = every.min(0), np.ptp(every, axis=0)
    height, width = (side - 2 * MARGIN for side in BOX)
    scale = min(1.0, width / max(extent[0], 1), height / max(extent[1], 1))
    wide, high = (int(np.ceil((side * scale).round(6))) + 2 * MARGIN for side in extent)  # 244.0000001 is 244
    canvas = Image.new("L", (wide * FINE, high * FINE))
    on = ImageDraw.Draw(canvas)
    for path in paths:
        trace(on, ((path - corner) * scale + MARGIN) * FINE, pen)
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


def trace(on: ImageDraw.ImageDraw, path: NDArray[np.float64], pen: float = PEN) -> None:
    """One stroke, round at its ends and turns; a dot is twice as wide as the pen, as it would be lost otherwise."""
    wide = round(pen * FINE)
    if np.ptp(path, axis=0).max() < 2 * wide:
        on.circle(tuple(path.mean(0)), wide, fill=255)
        return
    points = [tuple(point) for point in path.round()]
    on.line(points, fill=255, width=wide)
    for point in points:
        on.circle(point, wide / 2 - 0.5, fill=255)


if __name__ == "__main__":
    if not (copies := os.environ.get("COPIES", "0")).isdecimal():
        sys.exit(f"COPIES: a whole number of more pictures of each formula is needed, got {copies!r}")
    main(*given("crohme"), copies=int(copies))
