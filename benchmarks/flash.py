"""Attention in one pass on a GPU, and what it says about where it looked: right first, then time and memory, in one run.

Parity comes first: the error of the context, of every gradient and of every statistic against double precision, beside that
of plain PyTorch in the same precision. A number further away than twice that (three times for a gradient) is printed and
ends the run with exit code 1. Then medians by device events, with the spread of their middle half, and the bytes that a
pass adds at its highest:

    statistics   flash with and without them, beside PyTorch's kernel alone and with a second pass (sdpa, then a sweep)
    t5           a learned bias with its gradient, beside PyTorch's kernel with the bias as a mask, and the three stages
    window       a scope of +-128, beside FlexAttention, and PyTorch's kernel with a mask
    local_p      windows that queries place, beside gathered ones, and the formula over all keys
    rows         the weights of eight queries, beside those of one query at a time

Every set of tiles is a row. Rows are appended to results/flash.csv.

    python benchmarks/flash.py                     all of it, on one GPU, in about five minutes
    python benchmarks/flash.py --only window t5    some of it
"""

import argparse
import csv
import itertools
import os
import platform
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from attention import commit
from regard.attention.attend import compose
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score import distances
from regard.attention.score.alibi import Alibi
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.t5 import T5
from regard.attention.types import Request, Score
from regard.kernels import flash, rows, sdpa
from regard.viewer.record.listening import formed

RESULTS = Path(__file__).parent / "results" / "flash.csv"
HEADER = ["case", "name", "pass", "dtype", "ms", "spread_ms", "peak_bytes", "hardware", "versions", "commit"]
QUICK = ("entropy", "max", "argmax", "mean_position")
EVERY = (*QUICK, "spread", "received", "uniform", "top_3")
TILES = ([128, 64, 4, 3], [128, 64, 8, 3], [64, 64, 4, 3])
CHOSEN = flash.tiles

Side = Callable[[], list[Tensor]]


def request(shape: tuple[int, int, int, int], dtype: torch.dtype, score=ScaledDot(), scope: Scope = Everywhere()) -> Request:
    query, keys, values = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(3))
    return Request(query, keys, values, score, Softmax(), scope, 0.0, 0, False, ())


def once(run: Callable[[Request], object], asked: Request, flow: Tensor | None) -> list[Tensor]:
    """The context, with `flow` the gradient of every input and of T5's table, and the statistics."""
    with torch.set_grad_enabled(flow is not None):
        leaves = [each.detach().requires_grad_(flow is not None) for each in asked[:3]]
        found = run(asked._replace(query=leaves[0], keys=leaves[1], values=leaves[2]))
        if flow is None:
            return [found.context, *found.statistics.values()]
        wanted = [*leaves, *([asked.score.b] if isinstance(asked.score, T5) else [])]
        return [found.context, *torch.autograd.grad(found.context, wanted, flow), *found.statistics.values()]


PARITY = ("everywhere", "causal, padded", "local", "t5", "alibi")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def stages(name: str) -> tuple[Score, Scope]:
    """A score and a scope by the name of their case."""
    keep = torch.arange(333, device="cuda")[None] < torch.tensor([[333], [97]], device="cuda")
    cases: dict[str, Callable[[], tuple[Score, Scope]]] = {
        "everywhere": lambda: (ScaledDot(), Everywhere()),
        "causal, padded": lambda: (ScaledDot(), Causal() & Padding(keep)),
        "local": lambda: (ScaledDot(), Local(17)),
        "t5": lambda: (T5(4).cuda(), Causal()),
        "alibi": lambda: (Alibi(), Everywhere()),
    }
    return cases[name]()


def parity(name: str, dtype: torch.dtype) -> list[str]:
    """A line for every number that is further away than it may be, or differs when it is found again."""
    torch.manual_seed(0)
    score, scope = stages(name)
    worse = []
    for size in (24, 64, 128):
        asked = request((2, 4, 333, size), dtype, score, scope)._replace(statistics=EVERY)
        flow = torch.randn_like(asked.values)
        wide = asked._replace(**{each: getattr(asked, each).double() for each in ("query", "keys", "values")})
        ours, again, plain = (once(run, asked, flow) for run in (flash.run, flash.run, compose))
        truth = once(compose, wide, flow.double())
        gradients = len(truth) - len(EVERY) - 2  # of which top_3 has two
        for place, (one, other, beside, exact) in enumerate(zip(ours, again, plain, truth, strict=True)):
            if exact.dtype == torch.int64:
                continue  # a tie in half precision is another's in double
            error, usual = ((each.double() - exact).abs().max().item() for each in (one, beside))
            factor = 3 if 0 < place <= gradients else 2
            bound = factor * usual + 4 * torch.finfo(torch.float32).eps * (1 + exact.abs().max().item())
            if error > bound or not torch.equal(one, other):
                repeats = "equal" if torch.equal(one, other) else "DIFFER"
                worse.append(
                    f"PARITY {name} {size} {dtype} number {place}: {error:.2e}, bound {bound:.2e}, repeats {repeats}"
                )
    return worse


def all_parity() -> int:
    """How many numbers are too far away. Compiling takes longest, so every case has a process of its own."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        found = list(pool.map(parity, *zip(*itertools.product(PARITY, DTYPES), strict=True)))
    lines = list(itertools.chain(*found))
    print("\n".join([*lines, f"parity: {len(lines)} numbers too far away in {len(found)} cases"]), flush=True)
    return len(lines)


class Measured(NamedTuple):
    """Median milliseconds, the spread of their middle half, and the bytes that a pass adds at its highest."""

    ms: float
    spread: float
    peak: int


def measure(side: Side, rounds: int) -> Measured:
    for _ in range(3):
        side()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    side()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        side()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    quarter = statistics.quantiles(times, n=4)
    return Measured(statistics.median(times), quarter[2] - quarter[0], peak)


def tiled(tiles: list[int], side: Side) -> Side:
    """The same with other tiles."""

    def run() -> list[Tensor]:
        flash.tiles = lambda query, values: tiles
        try:
            return side()
        finally:
            flash.tiles = CHOSEN

    return run


def statistics_case() -> dict[str, Side]:
    sides: dict[str, Side] = {}
    for shape in ((4, 16, 4096, 128), (4, 16, 4096, 64), (64, 8, 512, 64)):
        for scope in (Everywhere(), Causal()):
            plain = request(shape, torch.bfloat16, scope=scope)
            for names, told in (((), "none"), (QUICK, "quick"), (EVERY, "all")):
                asked = plain._replace(statistics=names)
                label = f"{'x'.join(map(str, shape))} {type(scope).__name__.lower()} {told}"
                sides[f"sdpa {label}"] = lambda asked=asked: once(sdpa.run, asked, None)
                for tiles in TILES:
                    side = lambda asked=asked: once(flash.run, asked, None)  # noqa: E731
                    sides[f"flash {label} {'x'.join(map(str, tiles))}"] = tiled(tiles, side)
        flow = torch.randn_like(plain.values)
        label = f"{'x'.join(map(str, shape))} causal fwd+bwd"
        sides[f"sdpa {label}"] = lambda plain=plain, flow=flow: once(sdpa.run, plain, flow)
        sides[f"flash {label}"] = lambda plain=plain, flow=flow: once(flash.run, plain, flow)
    return sides


def t5_case() -> dict[str, Side]:
    score = T5(16, scale=0.125).cuda()
    asked = request((4, 16, 2048, 64), torch.bfloat16, score, Causal())
    flow = torch.randn_like(asked.values)

    def masked(part: Request) -> object:
        bucket = score.bucket(distances(2048, 2048, 0, part.query.device))[0]
        bias = score.b[:, bucket].to(part.query.dtype).masked_fill(~part.allowed[0, 0], float("-inf"))
        return flash.Attended(F.scaled_dot_product_attention(part.query, part.keys, part.values, bias[None], scale=0.125))

    sides: dict[str, Side] = {"reference fwd+bwd": lambda: once(compose, asked, flow)}
    sides["sdpa with a mask fwd+bwd"] = lambda: once(masked, asked, flow)
    for tiles in TILES:
        sides[f"flash fwd+bwd {'x'.join(map(str, tiles))}"] = tiled(tiles, lambda: once(flash.run, asked, flow))
    return sides


def window_case() -> dict[str, Side]:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    asked = request((4, 16, 8192, 64), torch.bfloat16, scope=Local(128))
    flow = torch.randn_like(asked.values)
    blocks = create_block_mask(lambda b, h, q, k: asked.scope(b, h, q, k), None, None, 8192, 8192, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)

    def flex(part: Request) -> object:
        return flash.Attended(compiled(part.query, part.keys, part.values, block_mask=blocks))

    sides: dict[str, Side] = {}
    for backward in (None, flow):
        label = "fwd" if backward is None else "fwd+bwd"
        sides[f"flex {label}"] = lambda backward=backward: once(flex, asked, backward)
        sides[f"sdpa with a mask {label}"] = lambda backward=backward: once(sdpa.run, asked, backward)
        for tiles in TILES:
            side = lambda backward=backward: once(flash.run, asked, backward)  # noqa: E731
            sides[f"flash {label} {'x'.join(map(str, tiles))}"] = tiled(tiles, side)
    return sides


def local_case() -> dict[str, Side]:
    sides: dict[str, Side] = {}
    for width in (10, 128):
        module = LocalP(64, width=width).to("cuda", torch.bfloat16)
        query, source = (torch.randn(4, 8192, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))

        def run(impl: str, module: LocalP = module, query: Tensor = query, source: Tensor = source) -> list[Tensor]:
            module.impl = impl
            context = module(query, module.remember(source)).context
            return [context, *torch.autograd.grad(context.sum(), list(module.parameters()))]

        sides[f"gathered +-{width} fwd+bwd"] = lambda run=run: run("reference")
        for tiles in TILES:
            sides[f"local +-{width} fwd+bwd {'x'.join(map(str, tiles))}"] = tiled(tiles, lambda run=run: run("fused"))
    return sides


def rows_case() -> dict[str, Side]:
    asked = request((4, 16, 8192, 64), torch.bfloat16, scope=Causal())
    places = list(range(0, 8192, 1024))

    def one_by_one() -> list[Tensor]:
        parts = [asked._replace(query=asked.query[:, :, row, None], offset=row) for row in places]
        return [torch.cat([formed(part) for part in parts], dim=2)]

    return {"rows": lambda: [rows.chosen(asked, places)], "one by one": one_by_one}


CASES = {"statistics": statistics_case, "t5": t5_case, "window": window_case, "local_p": local_case, "rows": rows_case}


def row(case: str, name: str, found: Measured) -> list[object]:
    import triton

    versions = f"python {platform.python_version()} torch {torch.__version__} triton {triton.__version__}"
    which = "fwd+bwd" if "fwd+bwd" in name else "fwd"
    taken = [f"{found.ms:.4f}", f"{found.spread:.4f}", found.peak]
    return [case, name, which, "bfloat16", *taken, torch.cuda.get_device_name(), versions, commit()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=["parity", *CASES], default=["parity", *CASES])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(
            "needs a GPU, and there is none; the same programs run in tests/kernels by Triton's interpreter", file=sys.stderr
        )
        return 2
    torch.manual_seed(0)
    worse = all_parity() if "parity" in options.only else 0
    RESULTS.parent.mkdir(exist_ok=True)
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([HEADER] if fresh else [])
        for case in (each for each in CASES if each in options.only):
            for name, side in CASES[case]().items():
                try:
                    found = measure(side, options.rounds)
                except (RuntimeError, torch.OutOfMemoryError) as error:  # tiles too large for a program are a finding too
                    print(f"{case:10} {name:60} {type(error).__name__}: {str(error)[:80]}", flush=True)
                    continue
                print(
                    f"{case:10} {name:60} {found.ms:9.4f} ms ±{found.spread:.4f} {found.peak / 2**20:9.1f} MiB", flush=True
                )
                writer.writerow(row(case, name, found))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
