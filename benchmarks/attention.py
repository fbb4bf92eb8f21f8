"""Attention on the CPU beside PyTorch: time and peak memory as ratios in one run.

Every row is measured against what a user would write instead, turn by turn, and the medians are compared; the floor is what
the arithmetic alone would take at the speed that this machine reached in the same run. Peak memory is taken in a process of
its own for each side. Rows are appended to results/attention.csv.
"""

import argparse
import csv
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention import attend
from regard.attention.score.additive import Additive

BATCH, SIZE = 32, 256
RESULTS = Path(__file__).parent / "results" / "attention.csv"


class Case(NamedTuple):
    """One comparison: ours and theirs as functions of (query, key, value), and the figure that ours must reach."""

    name: str
    ours: Callable[..., object]
    theirs: Callable[..., object]
    backward: bool
    time: float
    memory: float | None
    largest: int  # the longest sequence for which theirs fits into memory


def sdpa(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value)


def eager_with_weights(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


def plain_additive(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    score = SCORE
    W, U, v = score.W.weight[0], score.U.weight[0], score.v.weight[0, 0]
    hidden = torch.tanh((query @ W.mT)[:, :, :, None] + (key @ U.mT)[:, :, None])
    return torch.softmax(hidden @ v, dim=-1) @ value


torch.manual_seed(0)
SCORE = Additive(SIZE, SIZE)

CASES = [
    Case("scaled_dot", lambda q, k, v: attend(q, k, v).context, sdpa, False, 1.05, None, 1024),
    Case("scaled_dot", lambda q, k, v: attend(q, k, v).context, sdpa, True, 1.05, None, 1024),
    Case(
        "scaled_dot_weights", lambda q, k, v: attend(q, k, v, weights=True)[:2], eager_with_weights, False, 1.0, None, 1024
    ),
    Case("scaled_dot_weights", lambda q, k, v: attend(q, k, v, weights=True)[:2], eager_with_weights, True, 1.0, None, 1024),
    Case("additive", lambda q, k, v: attend(q, k, v, score=SCORE).context, plain_additive, False, 0.15, 1 / 8, 256),
    Case("additive", lambda q, k, v: attend(q, k, v, score=SCORE).context, plain_additive, True, 0.35, 1 / 8, 256),
]


def inputs(length: int, backward: bool) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (torch.randn(BATCH, 1, length, SIZE, requires_grad=backward) for _ in range(3))
    return query, key, value


def once(function: Callable[..., object], tensors: tuple[Tensor, ...], backward: bool) -> None:
    """One pass; with `backward` the gradients of the inputs and of the score's parameters too."""
    with torch.set_grad_enabled(backward):
        found = function(*tensors)
        if backward:
            context = found[0] if isinstance(found, tuple) else found
            assert isinstance(context, Tensor)
            context.backward(torch.ones_like(context))


def seconds(function: Callable[..., object], tensors: tuple[Tensor, ...], backward: bool) -> float:
    start = time.perf_counter()
    once(function, tensors, backward)
    return time.perf_counter() - start


def compare(case: Case, length: int, budget: float) -> tuple[float, float | None, float]:
    """Median seconds of ours and of theirs, measured in turns, and the spread of ours."""
    tensors = inputs(length, case.backward)
    beside = length <= case.largest
    for function in (case.ours, case.theirs)[: 1 + beside]:
        once(function, tensors, case.backward)
    ours: list[float] = []
    theirs: list[float] = []
    start = time.perf_counter()
    while len(ours) < 5 or (time.perf_counter() - start < budget and len(ours) < 200):
        sides = [(case.ours, ours), (case.theirs, theirs)][: 1 + beside]
        for function, times in sides if len(ours) % 2 else reversed(sides):  # neither side always goes first
            times.append(seconds(function, tensors, case.backward))
    quarter = statistics.quantiles(ours, n=4)
    return statistics.median(ours), statistics.median(theirs) if beside else None, quarter[2] - quarter[0]


def peak(number: int, length: int, side: str) -> int:
    """Bytes that one pass of one side adds at its highest, in a process of its own."""
    command = [sys.executable, __file__, "--peak", str(number), str(length), side]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_peak(number: int, length: int, side: str) -> None:
    case = CASES[number]
    tensors = inputs(length, case.backward)
    function = case.ours if side == "ours" else case.theirs
    small = inputs(8, case.backward)
    once(function, small, case.backward)  # what is loaded on first use is not the attention's
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    once(function, tensors, case.backward)
    print(resident("VmHWM") - before)


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024


def floors() -> tuple[float, float]:
    """Products and divisions a second that this machine reaches, in operations that fill its caches well."""
    a, b = torch.randn(2, 1024, 1024)
    product = min(timed(lambda: a @ b) for _ in range(10))
    x = torch.rand(1 << 18) + 1
    division = min(timed(lambda: x.reciprocal_()) for _ in range(200))
    return 2 * 1024**3 / product, x.numel() / division


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def floor(case: Case, length: int, products: float, divisions: float) -> float:
    """Seconds that the matrix products (scaled dot) or one division an element (additive) would take at best."""
    pairs = BATCH * length * length
    passes = 1 if not case.backward else 2 if case.name == "additive" else 3.5
    if case.name == "additive":
        return passes * pairs * SIZE / divisions
    return passes * 4 * pairs * SIZE / products


def hardware() -> str:
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return found.stdout.strip() or "unknown"


HEADER = ["name", "pass", "shape", "dtype", "threads", "ms", "spread_ms", "beside_ms", "ratio", "figure"]
HEADER += ["peak_bytes", "beside_peak_bytes", "floor_ms", "hardware", "versions", "commit"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 256, 1024], help="T = S")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=10.0, help="time spent on each row")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--peak", nargs=3, metavar=("CASE", "LENGTH", "SIDE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        measure_peak(int(options.peak[0]), int(options.peak[1]), options.peak[2])
        return
    run(options.lengths, options.threads, options.seconds, options.only)


def run(lengths: list[int], threads: int, budget: float, only: str) -> None:
    products, divisions = floors()
    print(f"batch {BATCH}, one head of {SIZE}, float32, {threads} threads, {hardware()}, torch {torch.__version__}")
    print(" ".join((f"{'':18}", *(f"{title:>9}" for title in TITLES))))
    rows = []
    for number, case in enumerate(CASES):
        for length in lengths if only in case.name else []:
            row = measure(number, length, budget)._replace(floor=floor(case, length, products, divisions))
            print(line(case, length, row), flush=True)
            rows.append(record(case, length, threads, row))
    append(rows)


class Measured(NamedTuple):
    """Seconds and bytes of one row; None where the other side does not fit into memory."""

    ours: float
    theirs: float | None
    spread: float
    peak: int
    their_peak: int | None
    floor: float = 0.0


def measure(number: int, length: int, budget: float) -> Measured:
    case = CASES[number]
    ours, theirs, spread = compare(case, length, budget)
    beside = length <= case.largest
    return Measured(ours, theirs, spread, peak(number, length, "ours"), peak(number, length, "theirs") if beside else None)


TITLES = ("pass", "T=S", "ms", "beside", "ratio", "figure", "MiB", "beside", "figure", "x floor")


def line(case: Case, length: int, row: Measured) -> str:
    cells = (
        which(case),
        str(length),
        f"{row.ours * 1e3:.2f}",
        "-" if row.theirs is None else f"{row.theirs * 1e3:.2f}",
        "-" if row.theirs is None else f"{row.ours / row.theirs:.3f}",
        f"<= {case.time:.2f}",
        f"{row.peak / 2**20:.0f}",
        "-" if row.their_peak is None else f"{row.their_peak / 2**20:.0f}",
        "" if case.memory is None else f"<= {case.memory:.3f}",
        f"{row.ours / row.floor:.1f}",
    )
    return " ".join((f"{case.name:18}", *(f"{cell:>9}" for cell in cells)))


def record(case: Case, length: int, threads: int, row: Measured) -> list[object]:
    theirs, ratio = ("", "") if row.theirs is None else (f"{row.theirs * 1e3:.3f}", f"{row.ours / row.theirs:.3f}")
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    shape = f"{BATCH}x1x{length}x{length}x{SIZE}"
    taken = [f"{row.ours * 1e3:.3f}", f"{row.spread * 1e3:.3f}", theirs, ratio, case.time]
    memory = [row.peak, "" if row.their_peak is None else row.their_peak, f"{row.floor * 1e3:.3f}"]
    return [case.name, which(case), shape, "float32", threads, *taken, *memory, hardware(), versions, commit()]


def which(case: Case) -> str:
    return "fwd+bwd" if case.backward else "fwd"


def append(rows: list[list[object]]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(HEADER)
        writer.writerows(rows)
    print(f"{len(rows)} rows appended to {RESULTS.parent.name}/{RESULTS.name}")


if __name__ == "__main__":
    main()
