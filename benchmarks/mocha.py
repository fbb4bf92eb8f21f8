"""Decoding long sources with mocha beside additive attention: time and memory as the source grows.

One source, one query after the other, each of which is made to stop 25 frames behind the one before; additive attention
reads the same source with the same queries, all of it each time. The two take turns, and medians are compared. Peak memory
is what the steps add to a process that has already remembered the source, in a process of its own for each side. Rows are
appended to results/mocha.csv.
"""

import argparse
import csv
import math
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from attention import commit, hardware, resident
from regard.attention.mechanisms.bahdanau import Bahdanau
from regard.attention.mechanisms.mocha import Mocha
from regard.attention.mechanisms.monotonic import Energy
from regard.attention.module import Attention
from regard.attention.types import Memory

SIZE, STRIDE = 256, 25
RESULTS = Path(__file__).parent / "results" / "mocha.csv"
HEADER = ["name", "frames", "queries", "size", "reached", "energies", "threads", "ms", "spread_ms", "us_per_frame"]
HEADER += ["peak_bytes", "hardware", "versions", "commit"]


def inputs(frames: int) -> tuple[dict[str, Attention], Tensor, Tensor]:
    """Both attentions, the queries, and the source."""
    torch.manual_seed(0)
    made: dict[str, Attention] = {"mocha": Mocha(SIZE).eval(), "additive": Bahdanau(SIZE).eval()}
    source = 2 * torch.randn(1, frames, SIZE)
    recognise(made["mocha"].score)
    return made, source[:, STRIDE - 1 :: STRIDE], source


def recognise(score: Energy) -> None:
    """Make energies that are above 0 where a query equals a key: tanh(1 + x) + tanh(1 - x) is largest at x = 0."""
    half = torch.eye(SIZE // 2, SIZE)
    score.W.weight.data[0] = torch.cat((half, -half))
    score.U.weight.data[0] = torch.cat((-half, half))
    score.b.data.fill_(1.0)
    score.v.weight.data.fill_(1.0)
    equal = SIZE * math.tanh(1.0) * score.g.item() / math.sqrt(SIZE)
    score.r.data.fill_(-0.9 * equal)


@torch.no_grad()
def decode(attention: Attention, query: Tensor, memory: Memory) -> int:
    """One query after the other; the place that mocha reached."""
    state = attention.start(memory)
    for place in range(query.shape[1]):
        state = attention(query[:, place : place + 1], memory, state, offset=place).state
    return int(state) if isinstance(state, Tensor) else memory.values.shape[2]


def compare(frames: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round of both sides, in turns."""
    made, query, source = inputs(frames)
    memories = {name: attention.remember(source) for name, attention in made.items()}
    times: dict[str, list[float]] = {name: [] for name in made}
    for number in range(rounds + 1):
        for name in list(made)[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            decode(made[name], query, memories[name])
            if number:  # the first round warms up
                times[name].append(time.perf_counter() - start)
    return times


def counted(frames: int) -> tuple[int, int]:
    """How many energies mocha computes to decide where to stop, and the place it reaches."""
    made, query, source = inputs(frames)
    attention, found = made["mocha"], [0]
    attention.score.register_forward_hook(lambda module, given, output: found.append(output.numel()))
    reached = decode(attention, query, attention.remember(source))
    return sum(found), reached


def measure_peak(name: str, frames: int) -> None:
    made, query, source = inputs(frames)
    with torch.no_grad():
        memory = made[name].remember(source)
        short = made[name].remember(source[:, :100])
    decode(made[name], query[:, :2], short)  # what is loaded on first use is not the attention's
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    decode(made[name], query, memory)
    print(resident("VmHWM") - before)


def peak(name: str, frames: int, threads: int) -> int:
    command = [sys.executable, __file__, "--threads", str(threads), "--peak", name, str(frames)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def rows(frames: int, rounds: int, threads: int) -> list[list[object]]:
    energies, reached = counted(frames)
    found = []
    for name, times in compare(frames, rounds).items():
        median, quarters = statistics.median(times), statistics.quantiles(times, n=4)
        queries, versions = frames // STRIDE, f"python {platform.python_version()} torch {torch.__version__}"
        met = energies if name == "mocha" else queries * frames
        taken = [f"{median * 1e3:.3f}", f"{(quarters[2] - quarters[0]) * 1e3:.3f}", f"{median / frames * 1e6:.3f}"]
        place = [SIZE, reached if name == "mocha" else frames, met, threads]
        found.append([name, frames, queries, *place, *taken, peak(name, frames, threads), hardware(), versions, commit()])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, nargs="+", default=[2500, 5000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--peak", nargs=2, metavar=("NAME", "FRAMES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        measure_peak(options.peak[0], int(options.peak[1]))
        return
    print(f"one source of size {SIZE}, a query for every {STRIDE} frames, {options.threads} threads, {hardware()}")
    titles = ("frames", "reached", "energies", "ms", "us/frame", "MiB")
    print(" ".join((f"{'':10}", *(f"{title:>10}" for title in titles))))
    found = []
    for frames in options.frames:
        for row in rows(frames, options.rounds, options.threads):
            cells = (row[1], row[4], row[5], row[7], row[9], f"{int(str(row[10])) / 2**20:.1f}")
            print(" ".join((f"{row[0]:10}", *(f"{cell:>10}" for cell in cells))), flush=True)
            found.append(row)
    append(found)


def append(found: list[list[object]]) -> None:
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([HEADER, *found] if fresh else found)
    print(f"{len(found)} rows appended to {RESULTS.parent.name}/{RESULTS.name}")


if __name__ == "__main__":
    main()
