"""Train every mechanism in every decoder on two small tasks, and write down which of them learn: docs/mechanisms.md.

    python docs/mechanisms.py --workers 2      hours on two cores; what docs/mechanisms.csv has already is not redone
    python docs/mechanisms.py --table          the table from the file

One process and one thread each, seed 0. There are four settings, each tried where the one before had fallen short; a row of
the file says which it was made with, and --settings and --steps make it again. In a recurrent network, scores that compare
dimension by dimension get projections (attention.size) but for setting "a".
"""

import argparse
import csv
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

TASKS, DECODERS = ("reverse", "translate"), ("recurrent", "convolution", "transformer")


class Setting(NamedTuple):
    """How to train; (steps, rate) by decoder."""

    size: dict[str, int]
    dropout: float
    schedule: str
    samples: int
    pace: dict[str, tuple[int, float]]


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
}
ENOUGH = 0.98
COLUMNS = ("attention", "decoder", "task", "setting", "exact", "steps", "seconds", "parameters")


def names() -> list[str]:
    """Every mechanism, every normaliser with the additive score, every score, and none."""
    from regard import lookup

    shares = [f"additive+{name}" for name in lookup.names("normalise") if name != "softmax"]
    return [*lookup.names("mechanisms"), *shares, *lookup.names("score"), "none"]


def train(attention: str, decoder: str, task: str, setting: str, steps: int | None) -> dict[str, object]:
    """One training; what came of it."""
    import torch

    from regard import lookup, tasks
    from regard.trained import load
    from regard.training.loop import train as run

    torch.set_num_threads(1)
    how, usual = SETTINGS[setting], tasks.find(task).Config()
    size, (planned, rate) = how.size[decoder], how.pace[decoder]
    steps = steps or planned
    product = attention in lookup.names("score") and getattr(lookup.find(attention, "score"), "one_size", False)
    projected = product and decoder == "recurrent" and setting != "a"
    config = dataclasses.replace(
        usual,
        data=dataclasses.replace(usual.data, samples=how.samples),
        model=dataclasses.replace(
            usual.model,
            encoder=decoder,
            decoder=decoder,
            attention=dataclasses.replace(usual.model.attention, name=attention, size=size if projected else None),
            size=size,
            layers=1 if decoder == "recurrent" else 2,
        ),
        dropout=dataclasses.replace(usual.dropout, embedding=how.dropout, residual=how.dropout),
        train=dataclasses.replace(
            usual.train,
            max_steps=steps,
            evaluate_every=300 if setting == "a" else steps,
            checkpoint_every=0,
            log_every=0,
            rate=rate,
            schedule=how.schedule,
            warmup=steps // 10 if how.schedule == "cosine" else 0,
            smoothing=usual.train.smoothing if setting == "a" else 0.0,
            device="cpu",
        ),
    )
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        experiment, _ = tasks.experiment(task, config)
        ended = run(experiment, folder, quiet=True)
        measured = load(folder, "cpu").measure([example.record for example in experiment.valid])
    seconds = time.perf_counter() - start
    exact = measured["exact"].value / 100
    return {"exact": f"{exact:.3f}", "steps": steps, "seconds": f"{seconds:.0f}", "parameters": ended["parameters"]}


def sweep(out: Path, workers: int, minutes: float, setting: str, steps: int | None) -> None:
    """All trainings whose like has not reached enough yet, as many as the minutes allow."""
    plan = [(name, decoder, task) for name in names() for decoder in SETTINGS[setting].pace for task in TASKS]
    left = dict.fromkeys(plan)
    for row in rows(out):
        longest = steps or SETTINGS[setting].pace.get(row["decoder"], (0,))[0]
        same = row["setting"] == setting and int(row["steps"]) >= longest
        if float(row["exact"]) >= ENOUGH or same:
            left.pop((row["attention"], row["decoder"], row["task"]), None)
    end = time.monotonic() + 60 * minutes
    fresh = not out.exists()

    def one(what: tuple[str, str, str]) -> dict[str, object] | None:
        seconds = end - time.monotonic()
        if seconds < 20:
            return None
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--one", *what, "--settings", setting]
        command += ["--steps", str(steps)] if steps else []
        try:
            made = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds, check=True)
        except subprocess.TimeoutExpired:
            return None
        found = made.stdout.strip().splitlines()[-1].split(",")
        return dict(zip(COLUMNS, (*what, setting, *found), strict=True))

    with out.open("a", newline="", encoding="utf-8") as file, ThreadPoolExecutor(workers) as pool:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        for done in as_completed([pool.submit(one, what) for what in left]):
            if (found := done.result()) is not None:
                writer.writerow(found)
                file.flush()


def rows(path: Path) -> list[dict[str, str]]:
    """What the file has."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(path: Path) -> str:
    """A row for each attention: exact match (and the steps it took) in each decoder and task."""
    every = sorted(rows(path), key=lambda row: float(row["exact"]))
    found = {(row["attention"], row["decoder"], row["task"]): row for row in every}  # the best of each
    heads = [f"{decoder}, {task}" for decoder in DECODERS for task in TASKS]
    lines = [f"| attention | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name in names():
        cells = [_cell(found.get((name, decoder, task))) for decoder in DECODERS for task in TASKS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


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
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--settings", default="a", choices=SETTINGS)
    parser.add_argument("--steps", type=int, help="of each training, where the usual ones were not enough")
    parser.add_argument("--one", nargs=3, metavar=("ATTENTION", "DECODER", "TASK"))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.one:
        made = train(*options.one, options.settings, options.steps)
        print(",".join(str(made[name]) for name in COLUMNS[4:]))
    elif options.table:
        print(table(options.out))
    else:
        sweep(options.out, options.workers, options.minutes, options.settings, options.steps)


if __name__ == "__main__":
    main()
