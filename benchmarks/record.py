"""What recording costs: the time of a pass with a recorder over the time without one, for three kinds of models.

The models are those of benchmarks/training.py at half their size, in evaluation mode without gradients, on one batch of
sources and targets that are taught. Each round runs every way of recording once, in turn, and medians are compared:

    weights      all weights of all attentions, moved to the host as float16, with their statistics
    statistics   statistics alone, fused kernels running on
    rows         the same, and the weights of eight queries
    graph        weights, and the network drawn as it runs, which happens once for each recorder

Rows are appended to results/record.csv.
"""

import argparse
import csv
import dataclasses
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import regard
from attention import commit, hardware
from regard.config import Dropout, Model
from regard.data.batch import Padded
from regard.models.seq2seq import Seq2Seq, build

VOCABULARY = 2000
RESULTS = Path(__file__).parent / "results" / "record.csv"
WAYS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "weights": {"graph": False},
    "statistics": {"statistics": True, "graph": False},
    "rows": {"rows": tuple(range(0, 32, 4)), "graph": False},
    "graph": {},
}


def models() -> dict[str, Callable[[], Seq2Seq]]:
    usual = Model(hidden_size=256, layers=2, heads=4, feedforward_size=512)

    def made(attention: str, **options: Any) -> Seq2Seq:
        part = dataclasses.replace(usual.attention, name=attention, heads=4)
        return build(dataclasses.replace(usual, attention=part, **options), Dropout(), VOCABULARY, VOCABULARY, False).eval()

    return {
        "recurrent": lambda: made("additive", order="bahdanau"),
        "convolution": lambda: made("dot", encoder="convolution", decoder="convolution"),
        "transformer": lambda: made("transformer", encoder="transformer", decoder="transformer"),
    }


def passed(model: Seq2Seq, source: Padded, target: torch.Tensor, way: dict[str, Any] | None) -> tuple[float, int]:
    """The seconds of one pass, and the bytes that were recorded."""
    if way is None:
        start = time.perf_counter()
        model(source, target)
        return time.perf_counter() - start, 0
    with regard.record(model, **way) as rec:
        start = time.perf_counter()
        model(source, target)
        taken = time.perf_counter() - start
    return taken, rec.cost.bytes


@torch.no_grad()
def compare(model: Seq2Seq, batch: int, length: int, rounds: int) -> dict[str, tuple[float, int]]:
    """Median seconds and bytes of every way, which take turns."""
    tokens = torch.randint(4, VOCABULARY, (batch, length))
    source = Padded(tokens, torch.ones_like(tokens, dtype=torch.bool))
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    held: dict[str, int] = {}
    for number in range(rounds + 1):
        for name in list(WAYS)[:: 1 if number % 2 else -1]:
            taken, held[name] = passed(model, source, tokens, WAYS[name])
            if number:  # the first round warms up
                times[name].append(taken)
    return {name: (statistics.median(each), held[name]) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", default="1x16,8x32,1x512", help="batch x length of source and target, several by commas")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rows = []
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    print(f"{options.threads} threads, {hardware()}, {versions}")
    for kind, make in models().items():
        model = make()
        for size in options.sizes.split(","):
            batch, length = map(int, size.split("x"))
            found = compare(model, batch, length, options.rounds)
            alone = found["none"][0]
            told = ", ".join(f"{name} {taken / alone:.2f}" for name, (taken, _) in found.items() if name != "none")
            print(f"{kind:12} {size:7} {1e3 * alone:8.2f} ms unrecorded; times that: {told}", flush=True)
            rows += [
                [
                    kind,
                    size,
                    options.threads,
                    name,
                    f"{1e3 * taken:.3f}",
                    f"{taken / alone:.3f}",
                    held,
                    hardware(),
                    versions,
                    commit(),
                ]
                for name, (taken, held) in found.items()
            ]
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            names = ["kind", "size", "threads", "recorded", "ms", "ratio", "bytes", "hardware", "versions", "commit"]
            writer.writerow(names)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
