"""Linear attention on the CPU beside PyTorch's fused softmax attention: time as a ratio, and how it grows with the length.

Both sides read the same tensors, turn by turn, and medians are compared; they do not compute the same thing, since linear
attention has another score and another normaliser. `growth` is the exponent p of time = c lengthᵖ between a length and the
one before it: 1 is linear, 2 is quadratic. Rows are appended to results/linear.csv. On a machine that others use too,
OMP_WAIT_POLICY=PASSIVE keeps threads from waiting for each other in circles.
"""

import argparse
import csv
import math
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from attention import commit, hardware, once
from regard.attention import attend
from regard.attention.normalise.sum_to_one import SumToOne
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.feature_map import FeatureMap

BATCH, HEADS, SIZE = 1, 4, 64
RESULTS = Path(__file__).parent / "results" / "linear.csv"
SCOPES: dict[str, Scope] = {"everywhere": Everywhere(), "causal": Causal()}


def ours(scope: str) -> Callable[..., Tensor]:
    options = {"score": FeatureMap(), "normalise": SumToOne(), "impl": "fused"}
    return lambda query, key, value: attend(query, key, value, scope=SCOPES[scope], **options).context


def theirs(scope: str) -> Callable[..., Tensor]:
    return lambda query, key, value: F.scaled_dot_product_attention(query, key, value, is_causal=scope == "causal")


class Measured(NamedTuple):
    """Median seconds of both sides, and the spread of ours."""

    ours: float
    theirs: float
    spread: float


def measure(scope: str, length: int, backward: bool, budget: float) -> Measured:
    """At least three rounds, and as many as the budget allows; neither side always goes first."""
    tensors = tuple(torch.randn(BATCH, HEADS, length, SIZE, requires_grad=backward) for _ in range(3))
    sides = {ours(scope): list[float](), theirs(scope): list[float]()}
    for function in sides:
        once(function, tensors, backward)
    start = time.perf_counter()
    while (rounds := len(next(iter(sides.values())))) < 3 or (time.perf_counter() - start < budget and rounds < 200):
        for function, taken in sides.items() if rounds % 2 else reversed(sides.items()):
            begin = time.perf_counter()
            once(function, tensors, backward)
            taken.append(time.perf_counter() - begin)
    mine, other = sides.values()
    quarter = statistics.quantiles(mine, n=4)
    return Measured(statistics.median(mine), statistics.median(other), quarter[2] - quarter[0])


def growth(now: float, before: float, length: int, shorter: int) -> float:
    return math.log(now / before) / math.log(length / shorter)


HEADER = ["scope", "pass", "shape", "dtype", "threads", "ms", "spread_ms", "beside_ms", "ratio", "growth", "beside_growth"]
HEADER += ["hardware", "versions", "commit"]
TITLES = ("T=S", "ms", "SDPA ms", "ratio", "growth", "SDPA growth")


def run(lengths: list[int], threads: int, budget: float) -> list[list[object]]:
    rows = list[list[object]]()
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    for scope in SCOPES:
        for backward in (False, True):
            way, last = "fwd+bwd" if backward else "fwd", None
            print(f"{scope}, {way}\n{' '.join(f'{each:>12}' for each in TITLES)}")
            for length in lengths:
                found = measure(scope, length, backward, budget)
                grown = ["", ""]
                if last is not None:
                    pairs = zip(found[:2], last[1][:2], strict=True)
                    grown = [f"{growth(now, before, length, last[0]):.2f}" for now, before in pairs]
                last = length, found
                numbers = [f"{found.ours * 1e3:.2f}", f"{found.theirs * 1e3:.2f}", f"{found.ours / found.theirs:.3f}"]
                print(" ".join(f"{each:>12}" for each in (length, *numbers, *grown)), flush=True)
                milliseconds = [numbers[0], f"{found.spread * 1e3:.2f}", *numbers[1:]]
                shape = f"{BATCH}x{HEADS}x{length}x{length}x{SIZE}"
                rows.append([scope, way, shape, "float32", threads, *milliseconds, *grown, hardware(), versions, commit()])
    return rows


def append(rows: list[list[object]]) -> None:
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([HEADER, *rows] if fresh else rows)
    print(f"{len(rows)} rows appended to {RESULTS.parent.name}/{RESULTS.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384], help="T = S")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=5.0, help="time spent on each row")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"batch {BATCH}, {HEADS} heads of {SIZE}, float32, {options.threads} threads, {hardware()}")
    append(run(options.lengths, options.threads, options.seconds))


if __name__ == "__main__":
    main()
