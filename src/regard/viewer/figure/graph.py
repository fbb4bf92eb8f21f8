"""The network as it ran: a box for each module, arrows for what went from one to another, attentions marked."""

from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, PathPatch
from matplotlib.path import Path

from regard.viewer.figure.folded import Arrow, Box, fold
from regard.viewer.figure.labels import POINTS, shown, widths
from regard.viewer.figure.layers import Layout, layout
from regard.viewer.figure.style import Drawing, add_metadata
from regard.viewer.figure.subject import Subject
from regard.viewer.palettes import table

MOST = 40
TALLEST = 9.0
"""Inches."""
PAD, BETWEEN, ROW = 5.0, 10.0, 16.0
"""Points around the text of a box, between boxes of a rank, and between ranks."""
TITLE, LONGEST = 26, 200
"""Characters of a path that are written, from its end, and that are looked at."""
SMALL = 0.8
"""The size of what stands below a box's name."""
INK, SOFT, LINES = "#333333", "#f4f4f4", "#8a8a8a"


class _Text(NamedTuple):
    """Text of a box, and its size in points."""

    title: str
    lines: tuple[str, ...]
    width: float
    height: float


def draw(subject: Subject, *, boxes: int = MOST) -> Drawing:
    """The graph, folded to at most so many boxes; arrows into an attention say what it takes them for."""
    graph = subject.trace.graph
    if not graph.nodes:
        raise ValueError(
            f"the trace {subject.trace.name!r} has no graph of its network; regard.record(model) draws one as the model runs"
        )
    if boxes < 1:
        raise ValueError(f"a graph is drawn in at least one box, asked for {boxes}")
    folded = fold(graph, boxes)
    texts = {box.id: _text(box) for box in folded.boxes}
    ends = [(arrow.start, arrow.end) for arrow in folded.arrows]
    places = layout({name: text.width for name, text in texts.items()}, ends, BETWEEN)
    left = min(places.places[name][0] - text.width / 2 for name, text in texts.items())
    right = max(places.places[name][0] + text.width / 2 for name, text in texts.items())
    edges = [point[0] for bend in places.bends for point in bend]
    left, right = min([left, *edges]) - 4, max([right, *edges]) + 4
    high = max(text.height for text in texts.values()) + ROW
    ranks = 1 + max(rank for _, rank in places.places.values())
    shrink = min(1.0, subject.width * 72 / (right - left), TALLEST * 72 / (ranks * high))
    written = [line for text in texts.values() for line in (text.title, *text.lines)]
    with subject.drawing(ranks * high * shrink / 72, *written) as drawing:
        drawing.set_layout_engine("none")
        axes = drawing.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        middle, half = (left + right) / 2, subject.width * 72 / shrink / 2
        axes.set(xlim=(middle - half, middle + half), ylim=((ranks - 0.5) * high, -0.5 * high))
        ports = _ports(folded.arrows, places, texts)
        for arrow, bend, (start, end) in zip(folded.arrows, places.bends, ports, strict=True):
            rank, rank2 = places.places[arrow.start][1], places.places[arrow.end][1]
            half_start, half_end = texts[arrow.start].height / 2, texts[arrow.end].height / 2
            sign = 1 if rank2 > rank else -1
            between = [(across, level * high) for across, level in bend]
            _arrow(
                axes,
                arrow,
                [(start, rank * high + sign * half_start), *between, (end, rank2 * high - sign * half_end)],
                shrink,
            )
        for box in folded.boxes:
            _box(axes, box, texts[box.id], places.places[box.id], high, shrink)
    title = f"{subject.trace.name}: the network as it ran"
    said = f"{title}; {len(graph.nodes)} modules in {len(folded.boxes)} boxes, attentions marked"
    return add_metadata(drawing, title, said)


def _text(box: Box) -> _Text:
    title = _tail(shown(box.id, LONGEST)) + (f"  × {box.times}" if box.times > 1 else "")
    lines = tuple(line if len(line) <= 44 else line[:43] + "…" for line in box.lines)
    room = max([widths([title])[0], *(widths([line])[0] * SMALL for line in lines)])
    return _Text(title, lines, float(room) + 2 * PAD, POINTS * 1.25 * (1 + SMALL * len(lines)) + PAD)


def _tail(path: str) -> str:
    return path if len(path) <= TITLE else "…" + path[1 - TITLE :]


def _box(axes: Axes, box: Box, text: _Text, place: tuple[float, int], high: float, shrink: float) -> None:
    x, y = place[0], place[1] * high
    marked = box.kind == "attention"
    orange = table("okabe_ito")[5] / 255
    axes.add_patch(
        FancyBboxPatch(
            (x - text.width / 2, y - text.height / 2), text.width, text.height, boxstyle="round,pad=0,rounding_size=2.5",
            facecolor="#fdf0e6" if marked else SOFT, edgecolor=orange if marked else LINES,
            linewidth=1.2 if marked else 0.5, zorder=3,
        )
    )  # fmt: skip
    top = y - text.height / 2 + PAD / 2 + POINTS * 0.62
    weight = "bold" if marked else "normal"
    axes.text(
        x,
        top,
        text.title,
        ha="center",
        va="center",
        fontsize=POINTS * shrink * (0.95 if marked else 1),
        fontweight=weight,
        zorder=4,
    )
    for number, line in enumerate(text.lines):
        down = top + POINTS * 1.25 * (0.92 + SMALL * number)
        axes.text(x, down, line, ha="center", va="center", fontsize=POINTS * SMALL * shrink, color=INK, zorder=4)


def _ports(arrows: list[Arrow], places: Layout, texts: dict[str, _Text]) -> list[tuple[float, float]]:
    """Horizontal positions where the arrows start and end: side by side along the box, in their order."""
    ports = [[0.0, 0.0] for _ in arrows]
    for name in texts:
        for side in (0, 1):
            mine = [number for number, arrow in enumerate(arrows) if (arrow.start, arrow.end)[side] == name]
            mine.sort(key=lambda number, side=side: _next(arrows[number], places.bends[number], places, side))  # type: ignore[misc]
            step = min(texts[name].width * 0.7 / max(len(mine), 1), 34.0 if side else 8.0)
            for place, number in enumerate(mine):
                ports[number][side] = places.places[name][0] + (place - (len(mine) - 1) / 2) * step
    return [(start, end) for start, end in ports]


def _next(arrow: Arrow, bend: list[tuple[float, int]], places: Layout, side: int) -> float:
    """Horizontal position of the next point of an arrow, seen from its end or its start."""
    if bend:
        return bend[-1 if side else 0][0]
    return places.places[arrow.start if side else arrow.end][0]


def _arrow(axes: Axes, arrow: Arrow, points: list[tuple[float, float]], shrink: float) -> None:
    """A curve through the places that the layout keeps free for it, with its role beside the head."""
    end, down = points[-1], points[-1][1] > points[0][1]
    sign = 1 if down else -1
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x, y), (x2, y2) in pairwise(points):
        vertices += [(x, (y + y2) / 2), (x2, (y + y2) / 2), (x2, y2)]
        codes += [Path.CURVE4] * 3
    dashes = "-" if down else (0, (2, 1))
    axes.add_patch(
        PathPatch(Path(vertices, codes), facecolor="none", edgecolor=LINES, linewidth=0.6, zorder=1, linestyle=dashes)
    )
    tip = (end[0], end[1] - sign * 3.5)
    axes.add_patch(
        FancyArrowPatch(
            tip, end, arrowstyle="-|>", mutation_scale=5 * shrink, color=LINES, linewidth=0, shrinkA=0, shrinkB=0
        )
    )
    if arrow.role:
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
        axes.text(
            end[0], end[1] - sign * ROW * 0.45, arrow.role, ha="center", va="center", fontsize=POINTS * 0.7 * shrink,
            color="#6a6a6a", zorder=2, bbox=ground,
        )  # fmt: skip
