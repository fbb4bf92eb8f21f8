"""Style and output of figures: sizes and lines for print, text as text, and local matplotlib settings.

matplotlib reads its settings when a thing is made and again when it is drawn and written, so a figure carries its own and
applies them each time, whatever the reader's are.
"""

import io
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from regard import io as atomic
from regard.viewer.figure.labels import POINTS, Thinned

WIDTHS = {"column": 3.25, "page": 6.75}
"""Inches."""
DPI = 300.0
WHOLE = ("pdf", "svg", "png")
"""Formats that are drawn in memory, and then written at once."""
LINE = 0.5
GREY = "#767676"
SETTINGS: dict[str, Any] = {
    "font.size": POINTS, "axes.titlesize": POINTS, "axes.labelsize": POINTS, "xtick.labelsize": POINTS,
    "ytick.labelsize": POINTS, "legend.fontsize": POINTS, "figure.titlesize": POINTS, "figure.labelsize": POINTS,
    "axes.linewidth": LINE, "xtick.major.width": LINE, "ytick.major.width": LINE, "xtick.minor.width": LINE,
    "ytick.minor.width": LINE, "patch.linewidth": LINE, "hatch.linewidth": 0.35, "grid.linewidth": LINE,
    "xtick.major.size": 2.0, "ytick.major.size": 2.0, "xtick.minor.size": 1.0, "ytick.minor.size": 1.0,
    "xtick.major.pad": 2.0, "ytick.major.pad": 2.0, "axes.labelpad": 3.0, "axes.titlepad": 4.0,
    "axes.unicode_minus": False, "text.parse_math": False, "text.usetex": False,
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "regard", "savefig.dpi": DPI,
    "figure.constrained_layout.h_pad": 0.02, "figure.constrained_layout.w_pad": 0.02,
}  # fmt: skip
OWN = re.compile(r"backend|interactive|toolbar|timezone|webagg|tk\.|macosx|keymap|savefig\.directory|date\.epoch|docstring")
"""Settings of the session rather than of a picture: those stay as they are."""


class Drawing(Figure):
    """A matplotlib figure that is written as it was meant: 300 dpi, text as text, and what it shows in its metadata."""

    def __init__(self, width: float, height: float, text: str, family: list[str], missing: set[str]):
        super().__init__(figsize=(width, height), layout="constrained")
        self.says: dict[str, str] = {}
        self.missing = missing
        self.settled: tuple[float, float] | None = None
        self.own = {"font.family": family} | ({"svg.fonttype": "path"} if text == "path" else {})

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure, at 300 dpi unless told otherwise; a .pdf, .svg or .png appears whole or not at all."""
        ending = os.path.splitext(str(fname))[1][1:].lower()
        kind = options.get("format") or ending or "png"
        save_options: dict[str, Any] = {"dpi": DPI, **self._metadata(kind)} | options
        with settings(self.own):
            if isinstance(fname, str | os.PathLike) and ending in WHOLE:
                page = io.BytesIO()
                super().savefig(page, **{"format": ending} | save_options)
                atomic.write(Path(fname), page.getvalue())
            else:
                super().savefig(fname, **save_options)

    def draw(self, renderer: Any) -> None:
        """Draw the figure with its own settings, laid out anew where its size was changed."""
        if self.settled not in (None, (self.get_figwidth(), self.get_figheight())):
            self.settle()
        with self.quiet():
            super().draw(renderer)

    def settle(self) -> None:
        """Lay out, take away the labels that touch, and again until none does: labels only become fewer, so this ends."""
        rulers = [ruler.get_major_locator() for axes in self.axes for ruler in (axes.xaxis, axes.yaxis)]
        ticks = [ruler for ruler in rulers if isinstance(ruler, Thinned)]
        self.settled = (self.get_figwidth(), self.get_figheight())
        for tick in ticks:
            tick.begin()
        self._lay_out()
        while sum(tick.thin() for tick in ticks):
            self._lay_out()

    def _lay_out(self) -> None:
        """Find everything's place, and draw nothing."""
        engine = self.get_layout_engine()
        if engine is not None:
            with self.quiet():
                engine.execute(self)
        for axes in self.axes:
            axes.apply_aspect()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """The figure's own settings; missing characters were already told of, once."""
        with settings(self.own), warnings.catch_warnings():
            for letter in self.missing:
                warnings.filterwarnings("ignore", rf"(?s)Glyph {ord(letter)} ")
            yield

    def _repr_png_(self) -> bytes:
        """PNG for a notebook."""
        page = io.BytesIO()
        self.savefig(page, format="png", dpi=200)
        return page.getvalue()

    def _metadata(self, kind: str) -> dict[str, Any]:
        """Title and description by the names each format has for them; no date, so that equal figures are equal files."""
        title, description = self.says.get("title", ""), self.says.get("description", "")
        if kind == "png":
            return {"metadata": {"Title": title, "Description": description}}
        if kind == "svg":
            return {"metadata": {"Title": title, "Description": description, "Date": None}}
        if kind == "pdf":
            return {"metadata": {"Title": title, "Subject": description, "CreationDate": None}}
        return {}


@contextmanager
def settings(own: Mapping[str, Any]) -> Iterator[None]:
    """matplotlib's defaults, ours and a figure's own, for as long as the block lasts."""
    theirs: dict[Any, Any] = {name: value for name, value in dict.items(matplotlib.rcParamsDefault) if not OWN.match(name)}
    with matplotlib.rc_context(theirs | SETTINGS | dict(own)):
        yield


def add_metadata(drawing: Drawing, title: str, description: str) -> Drawing:
    """A finished figure, which says what it is."""
    says = {"title": title, "description": description}  # a name may have bytes that are no UTF-8, and metadata may not
    drawing.says = {name: text.encode("utf-8", "backslashreplace").decode() for name, text in says.items()}
    return drawing
