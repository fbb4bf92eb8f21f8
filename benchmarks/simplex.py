"""Sparsemax and entmax without the matrix on a GPU: right first, then time and memory beside the three stages, in one run.

Parity comes first (parity.py), and every variant is compiled in processes side by side. Then medians by device events for
every set of tiles, causal and in bfloat16, beside the three stages and beside flash, whose softmax takes one pass where
these take several. Rows are appended to results/simplex.csv as they come. Exit code 1 where a number is too far.

    python benchmarks/simplex.py                 all of it, on one GPU, in under a minute
    python benchmarks/simplex.py --only time     without parity
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

import _bare  # noqa: F401
from _apart import apart
from _timing import WHERE, Budget, measure, put, staged, where
from parity import passed
from regard.attention.attend import run_reference
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Normaliser, Request
from regard.kernels import entmax, flash

RESULTS = Path(__file__).parent / "results" / "simplex.csv"
HEADER = ["name", "shape", "pass", "tiles", "dtype", "ms", "spread_ms", "peak_bytes", *WHERE]
NORMALISERS: dict[str, Callable[[], Normaliser]] = {
    "sparsemax": Sparsemax,
    "entmax": Entmax,
    "learned": lambda: Entmax(1.3, learn=True).cuda(),
}
SHAPES = ("4x16x2048x64", "64x8x512x64", "2x16x4096x128")
TILES = {64: ([64, 64, 4, 3],), 128: ([64, 32, 8, 2], [64, 64, 8, 2])}


def request(shape: tuple[int, ...], dtype: torch.dtype, normalise: Normaliser, scope: Scope, offset: int = 0) -> Request:
    torch.manual_seed(0)
    sides = [torch.randn(shape, device="cuda", dtype=dtype) for _ in range(3)]
    return Request(2 * sides[0], *sides[1:], ScaledDot(), normalise, scope, 0.0, offset, False, ())


def once(run: Callable[[Request], object], asked: Request, backward: bool) -> list[Tensor]:
    """The context, and with `backward` the gradient of every input and of alpha."""
    with torch.set_grad_enabled(backward):
        leaves = [each.detach().requires_grad_(backward) for each in asked[:3]]
        context = run(asked._replace(query=leaves[0], keys=leaves[1], values=leaves[2])).context
        if not backward:
            return [context]
        learned = list(asked.normalise.parameters()) if isinstance(asked.normalise, Entmax) else []
        return [context.detach(), *torch.autograd.grad(context, [*leaves, *learned], flow(context.shape, context.dtype))]


@cache
def flow(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """What comes back, drawn once."""
    return torch.randn(shape, device="cuda", dtype=dtype)


def sides() -> dict[str, tuple[Callable[[Request], object], Request, bool, list[int]]]:
    """What is timed, by name: how, what, with the way back, and with which tiles of ours."""
    found: dict[str, tuple[Callable[[Request], object], Request, bool, list[int]]] = {}
    for shape, backward in itertools.product(SHAPES, (False, True)):
        numbers = tuple(map(int, shape.split("x")))
        label = f"{shape} {'fwd+bwd' if backward else 'fwd'}"
        asked = request(numbers, torch.bfloat16, Softmax(), Causal())
        found[f"flash softmax {label} -"] = flash.run, asked, backward, []
        for which, normalise in NORMALISERS.items():
            part = asked._replace(normalise=normalise())
            found[f"stages {which} {label} -"] = run_reference, part, backward, []
            for tiles in TILES[numbers[3]] if which == "entmax" else TILES[numbers[3]][:1]:
                found[f"ours {which} {label} {'x'.join(map(str, tiles))}"] = entmax.run, part, backward, tiles
    return found


def tiled(run: Callable[[Request], object], asked: Request, backward: bool, tiles: list[int]) -> Callable[[], object]:
    def side() -> object:
        entmax.select_tiles = lambda query, values: tiles
        return once(run, asked, backward)

    return side


def work(name: str) -> None:
    """One pass of a variant, so that it is compiled."""
    tiled(*sides()[name])()
    torch.cuda.synchronize()


def compiled(timed: Iterable[str], options: argparse.Namespace) -> None:
    """What is to be timed, but for what is the same program: lengths make none, and fwd is a part of fwd+bwd."""
    pieces = [name for name in timed if "stages" not in name and "fwd+bwd" in name and "64x8x512x64" not in name]
    for answer in apart(work, pieces, options.seconds, options.workers):
        print(f"compiled {answer.piece:60} {answer.failed or f'{answer.seconds:.1f} s'}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "time"], help="without it, both")
    parser.add_argument("--rounds", type=int, default=10)
    staged(parser)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(
            "needs a GPU, and there is none; tests/kernels runs the same programs in Triton's interpreter", file=sys.stderr
        )
        return 2
    timed = {} if options.only == "parity" else sides()
    if options.compile != "never":
        compiled(timed, options)
    if options.compile == "alone":
        return 0
    fine = options.only == "time" or passed(["simplex"])
    budget = Budget(options.seconds)
    for name, side in timed.items():
        if budget.over(name):
            continue
        try:
            found = measure(tiled(*side), options.rounds, warm=2, seconds=0.3)
        except Exception as error:  # tiles too large for a program are a finding too
            print(f"{name:60} {type(error).__name__}: {' '.join(str(error).split())[:120]}", flush=True)
            continue
        print(f"{name:60} {found.ms:9.4f} ms ±{found.spread:.4f} {found.peak / 2**20:9.1f} MiB", flush=True)
        kind, which, shape, passes, tiles = name.split()
        taken = [f"{found.ms:.4f}", f"{found.spread:.4f}", found.peak]
        put(RESULTS, HEADER, [f"{kind} {which}", shape, passes, tiles, "bfloat16", *taken, *where()])
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
