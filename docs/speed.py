"""Draw what was measured, and write the tables of docs/speed.md: no figure there is typed by hand.

python docs/speed.py [RESULTS] [DOCS]        reads benchmarks/results/*.csv, writes docs/speed/*.svg and docs/speed.md

Of each file the rows of the GPU that was measured last count, where there is none those of the last processor, and of each
side those of its last commit; where a side was measured with several settings, the fastest stands for it.
"""

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c8c8c", "#e69f00")
Row = dict[str, str]


class Chart(NamedTuple):
    """How the rows of one file become bars: which belong together, what each is called, and what is measured."""

    group: Callable[[Row], str]
    label: Callable[[Row], str]
    field: str = "ms"
    unit: str = "ms, less is better"
    more: bool = False
    """Whether more is better."""


GPU = re.compile("NVIDIA|Tesla|Quadro|GeForce|AMD Instinct|AMD Radeon")
"""How the names of GPUs begin, and those of processors do not."""
BESIDE = {"ms as launched": ("ms", 1), "peak MiB": ("peak_bytes", 2**20)}
"""What a table shows beside what its chart does, where all rows have it."""


def _without_tiles(row: Row) -> str:
    return re.sub(r" \d+x\d+x\d+x\d+$", "", row["name"])


def _with_tiles(row: Row) -> str:
    """Of additive attention: tiles that it does not take by itself have a name."""
    tiles = row["tiles"].removeprefix("by fours").removeprefix(", ")
    return row["name"] if tiles in ("", "16 KiB, 2 blocks") else f"{row['name']}, {tiles}"


CHARTS = {
    "additive": Chart(
        lambda row: f"{row['shape']}, {row['pass']}",
        _with_tiles,
        "device_ms",
        "ms of the device, less is better",
    ),
    "dot": Chart(
        lambda row: row["pass"], lambda row: row["name"], "to_fastest", "auto's time over that of the fastest public path"
    ),
    "flash": Chart(lambda row: row["case"], _without_tiles),
    "simplex": Chart(lambda row: f"{row['shape']}, {row['pass']}", lambda row: row["name"]),
    "norm": Chart(lambda row: f"{row['shape']}, {row['norm']}", lambda row: row["name"]),
    "decode": Chart(lambda row: f"{row['shape']}, {row['case']}", lambda row: row["name"]),
    "recurrent": Chart(lambda row: row["shape"], lambda row: row["name"]),
    "transformer": Chart(
        lambda row: row["shape"],
        lambda row: row["name"],
        "tokens_per_second",
        "target tokens a second, more is better",
        True,
    ),
}


def read(path: Path) -> list[Row]:
    """The rows of the hardware that was measured last, a GPU before any processor; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    counts = [row for row in rows if GPU.match(row["hardware"])] or rows
    return [row for row in counts if row["hardware"] == counts[-1]["hardware"]]


def chosen(rows: list[Row], chart: Chart) -> dict[str, dict[str, Row]]:
    """By group and label: the fastest row of the last commit that measured it."""
    last = {(chart.group(row), chart.label(row)): row["commit"] for row in rows}
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        group, label = chart.group(row), chart.label(row)
        if row["commit"] != last[group, label]:
            continue
        before = found.setdefault(group, {}).get(label)
        if before is None or (float(row[chart.field]) > float(before[chart.field])) is chart.more:
            found[group][label] = row
    return found


def table(found: dict[str, dict[str, Row]], chart: Chart) -> str:
    """The chosen rows as Markdown."""
    rows = [(group, label, row) for group, sides in found.items() for label, row in sides.items()]
    measured = {chart.unit.partition(",")[0]: (chart.field, 1)}
    beside = {name: each for name, each in BESIDE.items() if all(each[0] in row for _, _, row in rows)}
    measured |= {name: each for name, each in beside.items() if each[0] != "ms" or chart.field == "device_ms"}
    lines = ["| " + " | ".join(("shape", "side", *measured)) + " |", "|---" * (2 + len(measured)) + "|"]
    for group, label, row in rows:
        shown = (_shown(row[field], size) for field, size in measured.values())
        lines.append(f"| {group} | {label} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _shown(number: str, size: float) -> str:
    """A measured number in some unit; a dash where nobody measured it."""
    value = float(number or "nan") / size
    return "-" if value != value else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def grid(rows: list[Row]) -> str:
    """Every path of the grid, a row for each shape and pass."""
    rows = [row for row in rows if row["case"] == "grid"]
    paths = [*dict.fromkeys(row["path"] for row in rows if row["path"] != "auto"), "auto"]
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(f"{row['name']}, {row['pass']}", {})[row["path"]] = row
    lines = [f"| ms | {' | '.join(paths)} | auto over the fastest |", "|---" * (2 + len(paths)) + "|"]
    for name, sides in found.items():
        shown = (f"{float(sides[path]['ms']):.3f}" if path in sides else "-" for path in paths)
        lines.append(f"| {name} | {' | '.join(shown)} | {sides['auto']['to_fastest']} |")
    return "\n".join(lines)


def bars(found: dict[str, dict[str, Row]], chart: Chart, path: Path) -> None:
    """One panel for each group."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, sum(0.7 + 0.25 * len(sides) for sides in found.values())), layout="constrained")
    sizes = {"height_ratios": [1 + len(sides) for sides in found.values()]}
    axes = figure.subplots(len(found), 1, squeeze=False, gridspec_kw=sizes)[:, 0]
    for axis, (group, sides) in zip(axes, found.items(), strict=True):
        names, values = list(sides), [float(row[chart.field]) for row in sides.values()]
        ours = [COLOURS[0] if re.match("ours|flash|local|rows", name) else COLOURS[4] for name in names]
        axis.barh(names[::-1], values[::-1], color=ours[::-1])
        axis.set_title(group, fontsize=9, loc="left")
        axis.tick_params(labelsize=8)
    axes[-1].set_xlabel(chart.unit, fontsize=9)
    save(figure, path)


def complexity(rows: list[Row], path: Path) -> str:
    """Time and memory over length, and the table of their exponents; of the way that was measured last."""
    from matplotlib.figure import Figure

    rows = [row for row in rows if (row["commit"], row["pass"]) == (rows[-1]["commit"], rows[-1]["pass"])]
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = ["| layer | operations | time | memory | one after the other | longest path |", "|---|---|---|---|---|---|"]
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for name, colour in zip(names, COLOURS, strict=False):
        mine = sorted((row for row in rows if row["name"] == name), key=lambda row: int(row["length"]))
        lengths = [int(row["length"]) for row in mine]
        for axis, field, factor in zip(axes, ("ms", "peak_bytes"), (1.0, 2**-20), strict=True):
            axis.loglog(
                lengths, [factor * float(row[field]) or float("nan") for row in mine], "o-", ms=3, label=name, color=colour
            )
        row = mine[-1]
        time, memory = (f"n^{float(row[field]):.2f}" for field in ("time_exponent", "memory_exponent"))
        lines.append(f"| {name} | O({row['textbook']}) | {time} | {memory} | O({row['sequential']}) | O({row['path']}) |")
    for axis, title in zip(axes, ("ms", "peak MiB"), strict=True):
        axis.set_xlabel("length")
        axis.set_title(title, fontsize=9, loc="left")
    axes[0].legend(fontsize=7)
    save(figure, path)
    first = rows[0]
    told = f"{first['pass']}, {first['batch']} sequences, size {first['size']}, {first['dtype']}"
    return "\n".join((*lines, "", f"{told}, {first['hardware']}, {first['versions']}."))


def save(figure: Any, path: Path) -> None:
    """Without a date, and with names that are not drawn by chance, so that equal numbers give equal files."""
    from matplotlib import rc_context

    path.parent.mkdir(exist_ok=True)
    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, metadata={"Date": None})


def put(text: str, name: str, made: str, page: str = "speed.md") -> str:
    """The text of a page with what was made between the marks of that name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if begin not in text or end not in text:
        raise ValueError(f"docs/{page} needs the marks {begin} and {end}, and one is missing")
    before, after = text.partition(begin)[0], text.partition(end)[2]
    return f"{before}{begin}\n{made}\n{end}{after}"


def main(results: Path, docs: Path) -> None:
    """Every file that is there."""
    text = (docs / "speed.md").read_text(encoding="utf-8")
    for name, chart in CHARTS.items():
        if rows := read(results / f"{name}.csv"):
            shown = rows if name != "dot" else [row for row in rows if (row["case"], row["path"]) == ("grid", "auto")]
            found = chosen(shown, chart)
            bars(found, chart, docs / "speed" / f"{name}.svg")
            last = rows[-1]
            told = grid(rows) if name == "dot" else table(found, chart)
            made = f"![{name}](speed/{name}.svg)\n\n{told}\n\n{last['hardware']}, {last['versions']}."
            text = put(text, name, made)
    if rows := read(results / "complexity.csv"):
        made = complexity(rows, docs / "speed" / "complexity.svg")
        text = put(text, "complexity", f"![complexity](speed/complexity.svg)\n\n{made}")
    (docs / "speed.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:]]
    if absent := [each for each in given if not each.is_dir()]:
        sys.exit(f"{__doc__}\n{absent[0]} is no folder")
    main(*(given + [ROOT / "benchmarks" / "results", ROOT / "docs"][len(given) :]))
