"""Tables of the goals and results of the kernels on a GPU, and of the speed of searches, from the measured rows.

python docs/reached.py [RESULTS] [DOCS]        reads benchmarks/results/*.csv, writes tables of speed.md and search.md

Where several settings were measured, the fastest stands for a side. What has no row is "not measured".
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from speed import ROOT, Row, put, read

MISSING = "not measured"
ADDITIVE = ("32x256x256x512", "8x1024x1024x256")
USUAL, ROOMY = "by fours", "by fours, more room"
"""Tiles of additive attention as it takes them, and with which it may hold 96 MiB."""
DECODERS = ("128x32x32x512", "64x50x50x1024")
TRAININGS = {"400x32": "650k tokens/s, 2.1 x Hugging Face, 1.3 x compiled nn.Transformer", "128x32": "450k tokens/s"}
GRID = 48
"""Passes of the grid: 24 shapes, there, and there and back."""


class Figure(NamedTuple):
    """A row of the table."""

    what: str
    asked: str
    reached: str


def least(rows: list[Row], field: str, test: Callable[[Row], bool]) -> Row | None:
    """The row with the least of a field among those that pass a test, or None."""
    return min(filter(test, rows), key=lambda row: float(row[field]), default=None)


def named(rows: list[Row], name: str, shape: str, which: str | None = None, field: str = "ms") -> Row | None:
    """The fastest row of a side at a shape."""
    return least(rows, field, lambda row: (row["name"], row["shape"]) == (name, shape) and which in (None, row.get("pass")))


def times(above: Row | None, below: Row | None, field: str = "ms") -> str:
    """How many times as much of a field one row has as another."""
    if above is None or below is None or not (above[field] and below[field]):
        return MISSING
    return f"{float(above[field]) / float(below[field]):.2f} x"


def additive(rows: list[Row]) -> Iterator[Figure]:
    """Times are those of the device, by replaying a graph; beside them those of a call that Python launches."""
    usual, roomy = ([row for row in rows if row["name"] != "ours" or row["tiles"] == tiles] for tiles in (USUAL, ROOMY))
    for shape in ADDITIVE:
        for which, asked in (("fwd", "4.5 x torch.compile"), ("fwd+bwd", "5 x torch.compile, 9 x eager")):
            ours, built, plain = (named(usual, name, shape, which, "device_ms") for name in ("ours", "compiled", "eager"))
            fast, slow = ([times(each, ours, field) for each in (built, plain)] for field in ("device_ms", "ms"))
            told = f"torch.compile and eager: {' and '.join(fast)}" if ours is not None else MISSING
            told += "" if ours is None else f"; {float(ours['device_ms']) / float(ours['floor_ms']):.2f} x the floor"
            told += "" if set(slow) == {MISSING} else f"; launched by Python {' and '.join(slow)}"
            yield Figure(f"additive {which}, {shape}", asked, told)
            held, more = _held(ours), named(roomy, "ours", shape, which, "device_ms")
            if more is not None and _held(more) != held:
                fast = [times(each, more, "device_ms") for each in (built, plain)]
                held += f"; with more room {_held(more)}, at {' and '.join(fast)} torch.compile and eager"
            yield Figure(f"its peak memory, {shape}, {which}", "under 2 x the inputs", held)
    step = named(rows, "ours", "64x1x512x1024", "fwd", "device_ms")
    reached = MISSING if step is None else f"{float(step['device_ms']) / float(step['floor_ms']):.2f} x"
    yield Figure("additive, one step, 64x1x512x1024", "under 1.6 x the time of reading its bytes once", reached)


def _held(row: Row | None) -> str:
    """What a pass holds at its highest, in inputs."""
    return MISSING if row is None else f"{int(row['peak_bytes']) / int(row['input_bytes']):.2f} x"


def dot(rows: list[Row]) -> Iterator[Figure]:
    """Of the passes that were measured, how many are within 3 % of the fastest public path."""
    ratios = [float(row["to_fastest"]) for row in rows if (row["case"], row["path"]) == ("grid", "auto")]
    within, worst = sum(each <= 1.03 for each in ratios), max(ratios, default=0)
    told = f"{within} of {len(ratios)} measured passes of {GRID}, the worst {worst:.3f} x"
    yield Figure("scaled dot, 24 shapes", "within 3 % of the fastest public path", told if ratios else MISSING)


def flash(rows: list[Row]) -> Iterator[Figure]:
    """What statistics add to the same attention without them; windows beside FlexAttention and a mask."""
    known = {row["name"].rpartition(" ")[0] for row in rows if row["case"] == "statistics"}
    for which in ("quick", "all"):
        sides = [name for name in known if name.startswith("flash") and name.endswith(f" {which}")]
        pairs = [(_began(rows, "statistics", name), _began(rows, "statistics", _without(name))) for name in sides]
        added = [float(asked["ms"]) / float(plain["ms"]) - 1 for asked, plain in pairs if asked and plain]
        told = f"{100 * min(added):.0f} to {100 * max(added):.0f} %" if added else MISSING
        yield Figure(f"statistics, {which}", "under 15 % on top of the plain kernel", told)
    for case, ours, wide, mask in (
        ("window", "flash {}", "flex {}", "sdpa with a mask {}"),
        ("local_p", "local +-128 {}", "flex, fixed windows +-128 {}", "all keys +-128 {}"),
    ):
        for which in ("fwd", "fwd+bwd"):
            mine, flexible, dense = (_began(rows, case, name.format(which)) for name in (ours, wide, mask))
            if mine is None:
                continue
            told = f"launched by Python {_beside(mine, flexible, dense)}"
            again, other = (_began(rows, case, f"{name.format(which)}, replayed") for name in (ours, wide))
            told = told if again is None else f"{_beside(again, other, dense)}; {told}"
            alone = _began(rows, case, f"local alone +-128 {which}, replayed")
            told += "" if alone is None else f"; without projections and centres {times(alone, other)} FlexAttention's time"
            yield Figure(f"{case} of +-128 at 8192, {which}", "FlexAttention's time; 5 x the dense mask", told)


def _beside(ours: Row, flexible: Row | None, dense: Row | None) -> str:
    return f"{times(ours, flexible)} FlexAttention's time, {times(dense, ours)} as fast as the dense one"


def _without(name: str) -> str:
    """The same side without statistics."""
    return f"{name.rpartition(' ')[0]} none"


def _began(rows: list[Row], case: str, name: str) -> Row | None:
    """The fastest of all tiles of a side."""
    return least(rows, "ms", lambda row: row["case"] == case and (row["name"] == name or row["name"].startswith(f"{name} ")))


def recurrent(rows: list[Row]) -> Iterator[Figure]:
    """Replayed as a graph, beside a loop of LSTMCells and cuDNN's LSTM alone, both as they come."""
    for shape in DECODERS:
        ours = named(rows, "ours one operation, graph", shape)
        eager, cudnn = (named(rows, name, shape) for name in ("LSTMCell loop", "cuDNN LSTM alone"))
        told = f"{times(eager, ours)} eager; {times(ours, cudnn)} cuDNN's time"
        asked = "10 x eager; under 2 x the cuDNN LSTM alone"
        yield Figure(f"recurrent decoder, {shape}", asked, told if ours is not None else MISSING)


def transformer(rows: list[Row]) -> Iterator[Figure]:
    """The fastest of ours, whatever of it is compiled."""
    for shape, asked in TRAININGS.items():
        ours = least(rows, "ms", lambda row, shape=shape: row["shape"] == shape and row["name"].startswith("ours"))
        peers = (named(rows, name, shape) for name in ("Hugging Face Marian, eager", "nn.Transformer, compiled"))
        if ours is None:
            yield Figure(f"Transformer-base, {shape}", asked, MISSING)
            continue
        marian, built = (times(each, ours) for each in peers)
        speed = f"{float(ours['tokens_per_second']) / 1e3:.0f}k ({ours['name']})"
        told = f"{speed}; Hugging Face {marian}; nn.Transformer compiled {built}"
        yield Figure(f"Transformer-base, {shape}", asked, told)


PARTS = {"additive": additive, "dot": dot, "flash": flash, "recurrent": recurrent, "transformer": transformer}


def reached(results: Path) -> str:
    """The table of everything that was asked."""
    lines = ["| measurement | goal | result |", "|---|---|---|"]
    for name, part in PARTS.items():
        lines += [f"| {each.what} | {each.asked} | {each.reached} |" for each in part(read(results / f"{name}.csv"))]
    return "\n".join(lines)


def decoding(rows: list[Row]) -> str:
    """Milliseconds a sentence of both sides, and what a beam adds to the memory of greedy search."""
    lines = [
        "| beam, sentences | ours | Hugging Face | times as fast | goal | memory over greedy |",
        "|---|---|---|---|---|---|",
    ]
    sides = {(row["name"], row["beam"], row["batch"]): row for row in rows}
    for (name, beam, batch), row in sides.items():
        if name != "ours":
            continue
        peer, greedy = (sides.get(key) for key in (("Hugging Face", beam, batch), ("ours", "1", batch)))
        theirs = MISSING if peer is None else f"{float(peer['ms_a_sentence']):.3g}"
        over = "" if beam == "1" or greedy is None else f"{int(row['peak_bytes']) / int(greedy['peak_bytes']):.2f} x"
        fast = times(peer, row, "ms_a_sentence")
        lines.append(
            f"| {beam}, {batch} | {float(row['ms_a_sentence']):.3g} | {theirs} | {fast} | {row['asked']} x | {over} |"
        )
    return "\n".join((*lines, "", f"{rows[-1]['hardware']}, {rows[-1]['versions']}."))


def main(results: Path, docs: Path) -> None:
    """Both pages."""
    pages = {"speed.md": ("reached", reached(results))}
    if rows := read(results / "decoding_gpu.csv"):
        pages["search.md"] = ("decoding_gpu", decoding(rows))
    for page, (name, made) in pages.items():
        path = docs / page
        path.write_text(put(path.read_text(encoding="utf-8"), name, made, page), encoding="utf-8")


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:]]
    if absent := [each for each in given if not each.is_dir()]:
        sys.exit(f"{__doc__}\n{absent[0]} is no folder")
    main(*(given + [ROOT / "benchmarks" / "results", ROOT / "docs"][len(given) :]))
