"""A matrix as an image: its colours, its scale, and no peak lost however small it is drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, Normalize, PowerNorm
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from regard.data.axis import Array
from regard.viewer.figure.style import GREY, LINE, Drawing
from regard.viewer.metrics.quantise import reduce
from regard.viewer.palettes import table

EQUAL = 60
"""Cells a side under which cells are square."""
LONG = 64
"""Cells a side above which colours follow the square root."""
LEAST = 60.0
"""Points that five numbers need above one another."""
SHUT = "#ececec"
"""The ground under the hatching of cells that may not be seen."""


def colours(palette: str) -> ListedColormap:
    """One of the shipped palettes, byte for byte."""
    return ListedColormap(table(palette) / 255, name=palette, bad=SHUT)


def scale(largest: float, smallest: float, longest: int) -> Normalize:
    """From 0 to the largest weight, by square root where the matrix is long; both sides of 0 where some are negative."""
    if smallest < 0:
        side = max(largest, -smallest)
        return Normalize(-side, side)
    return PowerNorm(0.5, 0, largest) if longest > LONG else Normalize(0, largest)


class Peaks(AxesImage):
    """An image that is reduced by maximum to the pixels it is drawn in: a stripe of one cell is seen at any size."""

    def __init__(self, axes: Axes, matrix: Array, allowed: Array | None, **options: Any):
        super().__init__(axes, interpolation="nearest", origin="upper", **options)
        visible = np.ones(matrix.shape, bool) if allowed is None else np.asarray(allowed, bool)
        self.whole = np.where(visible, np.asarray(matrix, np.float32), -np.inf)
        self.signed = bool(matrix.size) and float(matrix.min()) < 0
        rows, columns = matrix.shape
        self.set_extent((-0.5, columns - 0.5, rows - 0.5, -0.5))
        self.set_data(self.reduced(*matrix.shape))

    def draw(self, renderer: Any) -> None:
        """Reduce to what the renderer has room for, then draw."""
        box, more = self.axes.bbox, renderer.get_image_magnification()
        self.set_data(self.reduced(max(1, int(box.height * more)), max(1, int(box.width * more))))
        super().draw(renderer)

    def reduced(self, rows: int, columns: int) -> Array:
        """The matrix in at most so many cells, masked where nothing may be seen; of signed weights the farthest from 0."""
        small = reduce(self.whole, rows, columns)
        if self.signed and small.shape != self.whole.shape:
            lowest = -reduce(np.where(np.isinf(self.whole), self.whole, -self.whole), rows, columns)
            small = np.where((-lowest > small) & np.isfinite(lowest), lowest, small)
        return np.ma.masked_invalid(small)


def paint(axes: Axes, matrix: Array, allowed: Array | None, palette: str, norm: Normalize) -> Peaks:
    """Draw a matrix, rows down; cells that may not be seen are hatched."""
    image = Peaks(axes, matrix, allowed, cmap=colours(palette), norm=norm)
    image.set_clip_path(axes.patch)
    axes.add_image(image)
    rows, columns = matrix.shape
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_aspect("equal" if max(rows, columns) < EQUAL else "auto")
    if allowed is not None and not allowed.all():
        axes.add_patch(PathPatch(hatched(allowed), facecolor="none", edgecolor="#b0b0b0", hatch="//////", linewidth=0))
    return image


def hatched(allowed: Array) -> Path:
    """The outline of what may not be seen: one box for each run of keys and of equal rows."""
    boxes: list[tuple[float, float, float, float]] = []
    first = 0
    for row in range(1, len(allowed) + 1):
        if row == len(allowed) or (allowed[row] != allowed[first]).any():
            edges = np.flatnonzero(np.diff(np.concatenate([[False], ~allowed[first], [False]]).astype(np.int8)))
            boxes += [(start - 0.5, first - 0.5, end - 0.5, row - 0.5) for start, end in edges.reshape(-1, 2)]
            first = row
    corners = [[(x, y), (x2, y), (x2, y2), (x, y2), (x, y)] for x, y, x2, y2 in boxes]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path(np.array(corners).reshape(-1, 2), codes * len(boxes))


def bar(drawing: Drawing, image: AxesImage, axes: Sequence[Axes], what: str = "attention weight") -> Colorbar:
    """The one colour bar of a figure: it says where the scale ends, and when it follows the square root."""
    norm = image.norm
    root, slim = isinstance(norm, PowerNorm), 0.12 / drawing.get_figwidth()
    if len(axes) == 1:  # as high as the map itself, and beside it even where slanted labels hang over
        bar = drawing.colorbar(image, cax=axes[0].inset_axes((1.0 + 0.6 * slim, 0, slim, 1)))
    else:
        bar = drawing.colorbar(image, ax=list(axes), aspect=30, pad=0.02, fraction=0.05)
    end = float(np.max(norm.vmax or 1.0))
    if float(np.min(norm.vmin or 0.0)) < 0:
        ticks = [-end, -end / 2, 0, end / 2, end]
    else:
        ticks = [end * part for part in ((0, 0.05, 0.2, 0.5, 1) if root else (0, 1 / 4, 1 / 2, 3 / 4, 1))]
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(LINE)
    bar.outline.set_edgecolor(GREY)
    joint = " " if drawing.get_figheight() > 2.2 else "\n"
    bar.set_label(what + (f",{joint}square-root scale" if root else ""))
    return bar


def thin(bar: Colorbar) -> None:
    """Leave only the ends of a scale that is too short for what stands between them."""
    figure = bar.ax.get_figure(root=True)
    if figure is not None and bar.ax.bbox.height * 72 / figure.dpi < LEAST:
        ticks = bar.get_ticks()
        bar.set_ticks([ticks[0], ticks[-1]], labels=[f"{ticks[0]:.2g}", f"{ticks[-1]:.2g}"])


def reduced_to(drawing: Drawing, image: Peaks, dpi: float) -> str:
    """Reduced size of the matrix at a resolution, for the metadata; empty where every cell has a pixel."""
    rows, columns = image.whole.shape
    box = image.axes.bbox.transformed(drawing.dpi_scale_trans.inverted())
    height, width = int(box.height * dpi), int(box.width * dpi)
    if rows <= height and columns <= width:
        return ""
    return f"{rows} x {columns} weights reduced to {min(rows, height)} x {min(columns, width)} by maximum"
