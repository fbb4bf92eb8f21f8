"""Local attention on the CPU beside the dense formula: time and peak memory as ratios in one run.

local_p on gathered windows is measured against Luong's formula over all keys with the same parameters, turn by turn, and the
medians are compared. Peak memory is taken in a process of its own for each side. Rows are appended to results/local.csv.
"""

import argparse
import csv
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from attention import commit, hardware, resident
from regard.attention.mechanisms.local_p import LocalP

SIZE, WIDTH = 64, 10
FIGURES = {4096: 0.1}
"""The ratio to reach, where there is one to reach."""

RESULTS = Path(__file__).parent / "results" / "local.csv"
HEADER = ["name", "pass", "shape", "dtype", "threads", "ms", "spread_ms", "beside_ms", "ratio", "figure"]
HEADER += ["peak_bytes", "beside_peak_bytes", "hardware", "versions", "commit"]

torch.manual_seed(0)
LOCAL = LocalP(SIZE, width=WIDTH)


def windows(query: Tensor, source: Tensor) -> Tensor:
    return LOCAL(query, LOCAL.remember(source)).context


def dense(query: Tensor, source: Tensor) -> Tensor:
    """The formula as it is written: every score, every distance, and everything outside the window masked."""
    W, v, length = LOCAL.centre.W.weight, LOCAL.centre.v.weight[0], source.shape[1]
    centre = length * torch.sigmoid(torch.tanh(query @ W.mT) @ v)
    distance = torch.arange(length) - centre[..., None]
    scores = query @ (source @ LOCAL.score.W.weight[0].mT).mT
    weights = torch.softmax(scores.masked_fill(distance.abs() > WIDTH, -torch.inf), dim=-1)
    return (weights * torch.exp(-2 * (distance / WIDTH).square())) @ source


SIDES = {"windows": windows, "dense": dense}


def inputs(length: int, backward: bool) -> tuple[Tensor, Tensor]:
    query, source = (torch.randn(1, length, SIZE, requires_grad=backward) for _ in range(2))
    return query, source


def once(side: str, tensors: tuple[Tensor, ...], backward: bool) -> Tensor:
    """One pass; with `backward` the gradients of the inputs and of all parameters too."""
    with torch.set_grad_enabled(backward):
        context = SIDES[side](*tensors)
        if backward:
            context.backward(torch.ones_like(context))
    return context.detach()


def compare(length: int, backward: bool, budget: float) -> dict[str, list[float]]:
    """Seconds of both sides, measured in turns, after a look at whether they agree."""
    tensors = inputs(length, backward)
    torch.testing.assert_close(*(once(side, tensors, backward) for side in SIDES))
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    start = time.perf_counter()
    while len(taken["dense"]) < 5 or time.perf_counter() - start < budget:
        for side in SIDES if len(taken["dense"]) % 2 else reversed(SIDES):  # neither side always goes first
            begin = time.perf_counter()
            once(side, tensors, backward)
            taken[side].append(time.perf_counter() - begin)
    return taken


def peak(length: int, backward: bool, side: str) -> int:
    """Bytes that one pass of one side adds at its highest, in a process of its own."""
    command = [sys.executable, __file__, "--peak", str(length), str(int(backward)), side]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_peak(length: int, backward: bool, side: str) -> None:
    tensors = inputs(length, backward)
    once(side, inputs(8, backward), backward)  # what is loaded on first use is not the attention's
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    once(side, tensors, backward)
    print(resident("VmHWM") - before)


def measure(length: int, backward: bool, budget: float, threads: int) -> list[object]:
    """One row of the results, printed too."""
    taken = compare(length, backward, budget)
    ours, theirs = (statistics.median(taken[side]) for side in SIDES)
    quarter = statistics.quantiles(taken["windows"], n=4)
    peaks = [peak(length, backward, side) for side in SIDES]
    name, figure = "fwd+bwd" if backward else "fwd", FIGURES.get(length, "")
    cells = (
        name,
        length,
        f"{ours * 1e3:.2f}",
        f"{theirs * 1e3:.2f}",
        f"{ours / theirs:.4f}",
        f"<= {figure}" if figure else "-",
    )
    print(" ".join(f"{cell:>9}" for cell in (*cells, *(f"{each / 2**20:.0f}" for each in peaks))), flush=True)
    times = [f"{each * 1e3:.3f}" for each in (ours, quarter[2] - quarter[0], theirs)]
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    shape = f"1x1x{length}x{length}x{SIZE}, window {2 * WIDTH + 1}"
    front = ["local_p", name, shape, "float32", threads, *times, f"{ours / theirs:.4f}", figure]
    return [*front, *peaks, hardware(), versions, commit()]


def append(rows: list[list[object]]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([HEADER, *rows] if fresh else rows)
    print(f"{len(rows)} rows appended to {RESULTS.parent.name}/{RESULTS.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 4096], help="T = S")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=10.0, help="time spent on each row")
    parser.add_argument("--peak", nargs=3, metavar=("LENGTH", "BACKWARD", "SIDE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        measure_peak(int(options.peak[0]), options.peak[1] == "1", options.peak[2])
        return
    print(f"batch 1, one head of {SIZE}, float32, {options.threads} threads, {hardware()}, torch {torch.__version__}")
    titles = ("pass", "T=S", "ms", "dense", "ratio", "figure", "MiB", "dense")
    print(" ".join(f"{title:>9}" for title in titles))
    cases = [(length, backward) for length in options.lengths for backward in (False, True)]
    append([measure(length, backward, options.seconds, options.threads) for length, backward in cases])


if __name__ == "__main__":
    main()
