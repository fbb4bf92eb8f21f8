"""A decoder's step against a long memory on a GPU: right first, then time beside PyTorch's kernel and flash, in one run.

Parity comes first (parity.py), and every variant is compiled in processes side by side. Then medians by device events, each
step replayed as a CUDA graph, for every set of tiles and number of parts, with the share of the time in which the memory's
bytes could have been read once. `filled` is a cache of which each row has filled a half. Rows are appended to
results/decode.csv as they come. Exit code 1 where a number is too far away.

    python benchmarks/decode.py                 all of it, on one GPU, in under half a minute
    python benchmarks/decode.py --only time     without parity
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

import _bare  # noqa: F401
from _apart import apart
from _timing import WHERE, Budget, captured, measure, put, staged, where
from parity import passed
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request
from regard.kernels import decode, flash
from regard.kernels.triton.decode import launch

RESULTS = Path(__file__).parent / "results" / "decode.csv"
HEADER = ["name", "shape", "case", "variant", "dtype", "ms", "spread_ms", "of_bandwidth", *WHERE]
BANDWIDTH = 4.8e12
"""Bytes a second of one H200's memory, by its data sheet."""
SHAPES = ("1x32x8x32768x128", "8x32x8x8192x128", "64x16x16x2048x64")
"""Rows, heads, key heads, keys, size."""
TILES = ([16, 64, 4, 3], [16, 32, 4, 4])
PARTS = (64,)


def request(shape: tuple[int, ...], dtype: torch.dtype, scope: Scope) -> Request:
    torch.manual_seed(0)
    batch, heads, key_heads, keys, size = shape
    query = torch.randn(batch, heads, 1, size, device="cuda", dtype=dtype)
    memory = [torch.randn(batch, key_heads, keys, size, device="cuda", dtype=dtype) for _ in range(2)]
    return Request(query, *memory, ScaledDot(), Softmax(), scope, 0.0, keys - 1, False, ())


def grouped(asked: Request) -> Tensor:
    """PyTorch's kernel, which knows grouped heads; what a row has not filled yet is a mask."""
    mask = None if isinstance(asked.scope, Everywhere) else asked.allowed
    return F.scaled_dot_product_attention(asked.query, asked.keys, asked.values, attn_mask=mask, enable_gqa=True)


def sides() -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    found: dict[str, Callable[[], object]] = {}
    for shape, case in itertools.product(SHAPES, ("full", "filled")):
        numbers = tuple(map(int, shape.split("x")))
        asked = request(numbers, torch.bfloat16, Everywhere())
        if case == "filled":
            half = torch.full((numbers[0],), numbers[3] // 2 - 1, device="cuda")
            asked = asked._replace(scope=Causal(), offset=half)
        found[f"sdpa {shape} {case} -"] = lambda asked=asked: grouped(asked)
        found[f"flash {shape} {case} -"] = lambda asked=asked: flash.run(asked).context
        for tiles, parts in itertools.product(TILES, PARTS):
            name = f"ours {shape} {case} {'x'.join(map(str, tiles))}/{parts}"
            found[name] = lambda asked=asked, tiles=tiles, parts=parts: tiled(asked, tiles, parts)
    return found


def tiled(asked: Request, tiles: list[int], parts: int) -> Tensor:
    decode.select_tiles, launch.MAX_SPLITS = lambda request: tiles, parts
    return decode.run(asked).context


@torch.no_grad()
def work(name: str) -> None:
    """One step of a variant, so that it is compiled."""
    sides()[name]()
    torch.cuda.synchronize()


def compiled(timed: Iterable[str], options: argparse.Namespace) -> None:
    """What is to be timed, but for what is the same program: lengths make none."""
    pieces = [name for name in timed if not name.startswith("sdpa") and "8x32x8x8192x128" not in name]
    for answer in apart(work, pieces, options.seconds, options.workers):
        print(f"compiled {answer.piece:60} {answer.failed or f'{answer.seconds:.1f} s'}", flush=True)


@torch.no_grad()
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "time"], help="without it, both")
    parser.add_argument("--rounds", type=int, default=20)
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
    fine = options.only == "time" or passed(["decode"])
    budget = Budget(options.seconds)
    for name, side in timed.items():
        if budget.over(name):
            continue
        try:
            found = measure(captured(side), options.rounds, warm=2, seconds=0.1)
        except Exception as error:  # tiles too large for a program are a finding too
            print(f"{name:60} {type(error).__name__}: {' '.join(str(error).split())[:120]}", flush=True)
            continue
        kind, shape, case, variant = name.split()
        batch, _, key_heads, keys, size = map(int, shape.split("x"))
        read = batch * key_heads * keys * size * 4 // (2 if case == "filled" else 1)  # keys and values, two bytes a number
        share = read / BANDWIDTH / (found.ms / 1e3)
        print(f"{name:60} {1e3 * found.ms:9.1f} us ±{1e3 * found.spread:.1f} {share:6.1%} of the bandwidth", flush=True)
        taken = [f"{found.ms:.4f}", f"{found.spread:.4f}", f"{share:.3f}"]
        put(RESULTS, HEADER, [kind, shape, case, variant, "bfloat16", *taken, *where()])
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
