"""Train every mechanism in every decoder on two small tasks, and write down which of them learn: docs/mechanisms.md.

    python docs/mechanisms.py --workers 2 --settings e f g     hours on two cores; what docs/mechanisms.csv has is not redone
    python docs/mechanisms.py --table                          the tables from the file

One process and one thread each, seed 0. There are several settings, each tried where those before it fell short; a row of
the file says which it was made with, and --settings and --steps make it again. In a recurrent network, scores that compare
dimension by dimension get projections (attention.size) but for setting "a". What reads its source in order only is also
given a task that needs no more: pronounce, letters to phones.
"""

import argparse
import csv
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from queue import Empty, PriorityQueue
from threading import Lock
from typing import NamedTuple

TASKS, DECODERS = ("reverse", "translate"), ("recurrent", "convolution", "transformer")
ORDERED, IN_ORDER = ("dynamic_convolution", "forward", "gmm", "mocha", "monotonic"), "pronounce"
"""What never goes back in its source, and a task that does not ask for it."""

Cell = tuple[str, str, str]
"""An attention, a decoder, a task."""


class Setting(NamedTuple):
    """How to train; (steps, rate) by decoder."""

    size: dict[str, int]
    dropout: float
    schedule: str
    samples: int
    pace: dict[str, tuple[int, float]]
    reward: str = "rest"
    """What a look that was drawn is credited with."""
    baseline: str = "moving_average"
    projected: bool = False
    """Whether a convolution and a transformer too give projections to scores that compare dimension by dimension."""


SETTINGS = {
    "a": Setting(
        dict.fromkeys(DECODERS, 64),
        0.1,
        "constant",
        4000,
        {"recurrent": (1200, 3e-3), "convolution": (1200, 1e-3), "transformer": (1200, 1e-3)},
    ),
    "b": Setting(
        dict.fromkeys(DECODERS, 64),
        0.0,
        "cosine",
        4000,
        {"recurrent": (700, 5e-3), "convolution": (700, 2e-3), "transformer": (800, 3e-3)},
    ),
    "c": Setting({"recurrent": 128}, 0.1, "constant", 8000, {"recurrent": (900, 3e-3)}),
    "d": Setting(
        {"convolution": 64, "transformer": 64},
        0.0,
        "cosine",
        20_000,
        {"convolution": (800, 2e-3), "transformer": (800, 3e-3)},
    ),
    "e": Setting({"recurrent": 128}, 0.1, "cosine", 20_000, {"recurrent": (1200, 3e-3)}),
    "f": Setting(
        {"convolution": 64, "transformer": 64},
        0.0,
        "cosine",
        20_000,
        {"convolution": (1600, 2e-3), "transformer": (1600, 3e-3)},
    ),
    "g": Setting(
        {"recurrent": 128, "convolution": 64, "transformer": 64},
        0.0,
        "cosine",
        20_000,
        {"recurrent": (2400, 3e-3), "convolution": (3200, 2e-3), "transformer": (3200, 3e-3)},
        reward="token",
        baseline="learned",
    ),
    "h": Setting(
        {"convolution": 64, "transformer": 64},
        0.0,
        "cosine",
        20_000,
        {"convolution": (1600, 2e-3), "transformer": (1600, 3e-3)},
        projected=True,
    ),
}
ENOUGH = 0.98
COLUMNS = ("attention", "decoder", "task", "setting", "exact", "steps", "seconds", "parameters")


def names() -> list[str]:
    """Every mechanism, every normaliser with the additive score, every score, and none."""
    from regard import registry

    shares = [f"additive+{name}" for name in registry.names("normalise") if name != "softmax"]
    return [*registry.names("mechanisms"), *shares, *registry.names("score"), "none"]


def train(attention: str, decoder: str, task: str, setting: str, steps: int | None) -> dict[str, object]:
    """One training; what came of it."""
    import torch

    from regard import registry, tasks
    from regard.inference.load import load
    from regard.training.loop import train as run

    torch.set_num_threads(1)
    how, usual = SETTINGS[setting], tasks.find(task).Config()
    size, (planned, rate) = how.size[decoder], how.pace[decoder]
    steps = steps or planned
    dotted = attention in registry.names("score") and getattr(registry.find(attention, "score"), "one_size", False)
    projected = dotted and (how.projected or (decoder == "recurrent" and setting != "a"))
    config = dataclasses.replace(
        usual,
        data=dataclasses.replace(usual.data, samples=how.samples),
        model=dataclasses.replace(
            usual.model,
            encoder=decoder,
            decoder=decoder,
            attention=dataclasses.replace(usual.model.attention, name=attention, size=size if projected else None),
            hidden_size=size,
            layers=1 if decoder == "recurrent" else 2,
        ),
        dropout=dataclasses.replace(usual.dropout, embedding=how.dropout, residual=how.dropout),
        train=dataclasses.replace(
            usual.train,
            max_steps=steps,
            evaluate_every=300 if setting == "a" else steps,
            checkpoint_every=0,
            log_every=0,
            learning_rate=rate,
            schedule=how.schedule,
            warmup_steps=steps // 10 if how.schedule == "cosine" else 0,
            label_smoothing=usual.train.label_smoothing if setting == "a" else 0.0,
            reinforce_reward=how.reward,
            reinforce_baseline=how.baseline,
            device="cpu",
        ),
    )
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        experiment, _ = tasks.experiment(task, config)
        ended = run(experiment, folder, quiet=True)
        measured = load(folder, "cpu").evaluate_records([example.record for example in experiment.valid])
    seconds = time.perf_counter() - start
    exact = measured["exact"].value / 100
    return {"exact": f"{exact:.3f}", "steps": steps, "seconds": f"{seconds:.0f}", "parameters": ended["parameters"]}


def sweep(out: Path, cells: Iterable[Cell], settings: list[str], steps: int | None, workers: int, minutes: float) -> None:
    """Train each cell that has not reached enough, one setting after the other; those that were never run come first."""
    end, writing, waiting = time.monotonic() + 60 * minutes, Lock(), PriorityQueue[tuple[int, bool, int, Cell]]()
    had, before = best(out), rows(out)
    for number, cell in enumerate(cells):
        if cell not in had or float(had[cell]["exact"]) < ENOUGH:
            waiting.put((0, cell in had, number, cell))

    def tried(cell: Cell, setting: str) -> bool:
        longest = steps or SETTINGS[setting].pace[cell[1]][0]
        same = [row for row in before if key(row) == cell and row["setting"] == setting]
        return any(int(row["steps"]) >= longest for row in same)

    def work(_: int) -> None:
        while time.monotonic() < end - 20:
            try:
                place, again, number, cell = waiting.get_nowait()
            except Empty:
                return
            setting = settings[place]
            found = None
            if cell[1] in SETTINGS[setting].pace and not tried(cell, setting):
                found = apart(cell, setting, steps, end - time.monotonic())
            if found:
                with writing:
                    append(out, found)
            if place + 1 < len(settings) and not (found and float(str(found["exact"])) >= ENOUGH):
                waiting.put((place + 1, again, number, cell))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))


def apart(cell: Cell, setting: str, steps: int | None, seconds: float) -> dict[str, object] | None:
    """One training in a process of its own; None where it failed or took too long."""
    command = [sys.executable, __file__, "--one", *cell, "--settings", setting]
    command += ["--steps", str(steps)] if steps else []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        made = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        return None
    except subprocess.CalledProcessError as error:
        print(*cell, setting, error.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    return dict(zip(COLUMNS, (*cell, setting, *made.stdout.strip().splitlines()[-1].split(",")), strict=True))


def append(path: Path, row: dict[str, object]) -> None:
    """A row more in the file."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def key(row: dict[str, str]) -> Cell:
    """The cell that a row is about."""
    return row["attention"], row["decoder"], row["task"]


def best(path: Path) -> dict[Cell, dict[str, str]]:
    """The best row of each cell."""
    return {key(row): row for row in sorted(rows(path), key=lambda row: float(row["exact"]))}


def rows(path: Path) -> list[dict[str, str]]:
    """What the file has."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(path: Path, attentions: Iterable[str], tasks: Iterable[str]) -> str:
    """A row for each attention: exact match (and the steps it took) in each decoder and task."""
    found, columns = best(path), list(product(DECODERS, tasks))
    lines = [f"| attention | {' | '.join(', '.join(column) for column in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name in attentions:
        lines.append(f"| {name} | {' | '.join(_cell(found.get((name, *column))) for column in columns)} |")
    return "\n".join(lines)


def tables(path: Path) -> list[str]:
    """Every attention on the two tasks, and those that read in order on theirs."""
    return [table(path, names(), TASKS), table(path, ORDERED, [IN_ORDER])]


def _cell(row: dict[str, str] | None) -> str:
    if row is None:
        return ""
    exact = float(row["exact"])
    return f"{exact:.2f} ({row['steps']})" if exact >= ENOUGH else f"**{exact:.2f}** ({row['steps']})"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".csv"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10_000)  # a week; poll() counts to 35,000
    parser.add_argument("--settings", nargs="+", default=["e", "f", "g"], choices=SETTINGS, help="one after the other")
    parser.add_argument("--only", nargs="+", metavar="ATTENTION", help="these alone")
    parser.add_argument("--without", nargs="+", default=[], metavar="ATTENTION", help="all but these")
    parser.add_argument("--steps", type=int, help="of each training, where the usual ones were not enough")
    parser.add_argument("--one", nargs=3, metavar=("ATTENTION", "DECODER", "TASK"))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.one:
        made = train(*options.one, options.settings[0], options.steps)
        print(",".join(str(made[name]) for name in COLUMNS[4:]))
    elif options.table:
        print("\n\n".join(tables(options.out)))
    else:
        every = [*product(ORDERED, DECODERS, [IN_ORDER]), *product(names(), DECODERS, TASKS)]
        cells = [cell for cell in every if cell[0] in (options.only or names()) and cell[0] not in options.without]
        sweep(options.out, cells, options.settings, options.steps, options.workers, options.minutes)


if __name__ == "__main__":
    main()
