"""Additive attention on a GPU beside eager PyTorch and torch.compile: right first, then time and peak memory, in one run.

Every row computes softmax(vᵀ tanh(q + k)) values from sides that are projected already, on the same fresh random numbers.
Parity comes first: the largest error of the context and of every gradient against double precision, beside that of plain
PyTorch in the same precision; a row that is further away than twice that (three times for a gradient) says so, and then the
run ends with exit code 1. Times are medians by device events, with the spread of the middle half, launched as a user would
and replayed as a CUDA graph (`device`), where the host has no part; `floor` is one special-function operation for each
query, key and hidden unit, three times that with the way back, and for one query the bytes read once. Every set of tiles is
a row. Everything is compiled first, in processes side by side; rows are appended to results/additive.csv.

    python benchmarks/additive.py                     all of it, on one GPU, in about a minute
    python benchmarks/additive.py --only parity       without the times
    python benchmarks/additive.py --only time --tiles "32x64" --shapes 2
    python benchmarks/additive.py --dtype float32     in another precision
"""

import argparse
import csv
import os
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

from attention import commit
from gpu import BARE
from regard.kernels.additive_triton import operator
from regard.kernels.additive_triton.arguments import Scoped, Tiles

RESULTS = Path(__file__).parent / "results" / "additive.csv"
SHAPES = [(32, 64, 64, 512), (32, 256, 256, 512), (8, 1024, 1024, 256), (64, 1, 512, 1024)]
"""Batch, queries, keys, hidden units, which are the value's dimensions too."""
SMALL = [(2, 33, 65, 24), (1, 1, 77, 40), (3, 17, 16, 129), (2, 1, 1, 8), (1, 100, 31, 256)]
"""For parity: odd lengths, length 1, odd sizes."""
MANY = {
    "32x64": Tiles(),
    "32x64, free": Tiles(registers=None, gather_pairs=4),
    "32x64, much room": Tiles(room=96 << 20),
    "16x64": Tiles(rows=16, gather_rows=16),
    "32x64, 64 back": Tiles(registers=168, gather_rows=64, gather_pairs=1),
    "32x128, 4 warps": Tiles(columns=128, warps=4, gather_units=128, gather_warps=8),
}
ONE = {
    "16 keys x 256": Tiles(),
    "16 keys x 512": Tiles(step_units=512, step_warps=8),
    "8 keys x 1024": Tiles(step_columns=8, step_units=1024, step_warps=8),
}
SPECIAL, BANDWIDTH = 4.18e12, 4.27e12
"""Special-function operations and bytes a second of an H200, as measured for the floor."""

Inputs = tuple[Tensor, Tensor, Tensor, Tensor]


def eager(query: Tensor, key: Tensor, value: Tensor, v: Tensor) -> Tensor:
    scores = (torch.tanh(query[:, :, :, None] + key[:, :, None]) @ v[:, None, :, None])[..., 0]
    return torch.softmax(scores, dim=-1) @ value


def ours(query: Tensor, key: Tensor, value: Tensor, v: Tensor) -> Tensor:
    return operator.attention(query, key, value, v)[0]


def inputs(shape: tuple[int, int, int, int], dtype: torch.dtype, backward: bool) -> Inputs:
    batch, queries, keys, size = shape
    made = [torch.randn(batch, 1, time, size, device="cuda", dtype=dtype) for time in (queries, keys, keys)]
    made.append(torch.randn(1, size, device="cuda", dtype=dtype) / size**0.5)
    query, key, value, v = (each.requires_grad_(backward) for each in made)
    return query, key, value, v


def once(function: Callable[..., Tensor], given: Inputs, flow: Tensor | None) -> list[Tensor]:
    """The context, and with `flow` every gradient."""
    with torch.set_grad_enabled(flow is not None):
        context = function(*given)
        return [context] if flow is None else [context, *torch.autograd.grad(context, given, flow)]


def parity(shape: tuple[int, int, int, int], dtype: torch.dtype) -> list[tuple[str, float, float]]:
    """Of the context and every gradient: our error against double precision, and plain PyTorch's."""
    given = inputs(shape, dtype, True)
    flow = torch.randn(*given[0].shape[:3], shape[3], device="cuda", dtype=dtype)
    found, plain = once(ours, given, flow), once(eager, given, flow)
    wide = tuple(each.detach().double().requires_grad_() for each in given)
    exact = once(eager, wide, flow.double())  # type: ignore[arg-type]
    names = ("context", "query", "key", "value", "v")
    return [
        (name, (mine - right).abs().max().item(), (theirs - right).abs().max().item())
        for name, mine, theirs, right in zip(names, found, plain, exact, strict=True)
    ]


def corners(dtype: torch.dtype) -> list[str]:
    """What must hold whatever the tiles: the far range, rows that see nothing, hidden NaN, equal repeats."""
    faults = []
    query, key, value, v = inputs((2, 19, 70, 24), dtype, True)
    flow = torch.randn_like(value[:, :, :19])
    keep = torch.ones(2, 70, dtype=torch.bool, device="cuda")
    keep[0], keep[1, 40:] = False, False
    hidden = ~keep[:, None, :, None]
    poisoned = tuple(
        each.detach().masked_fill(hidden, torch.nan).requires_grad_() if each.shape[2:3] == (70,) else each
        for each in (query, key, value, v)
    )

    def padded(*given: Tensor) -> Tensor:
        return operator.attention(*given, Scoped(keep, ahead=0, offset=51))[0]

    first, again = once(padded, poisoned, flow), once(padded, poisoned, flow)
    if not all(each.isfinite().all() for each in first):
        faults.append("NaN from where nobody looks")
    if first[0][0].any() or first[1][0].any():
        faults.append("a row that sees nothing reads something")
    if not all(torch.equal(one, other) for one, other in zip(first, again, strict=True)):
        faults.append("repeats differ")
    far = torch.full_like(query, 60.0), torch.full_like(key, -59.5)
    share = operator.scores(*(each.detach() for each in far), v.detach())
    right = (torch.tanh(torch.tensor(0.5, dtype=torch.float64)) * v.detach().double().sum()).item()
    if (share.double() - right).abs().max() > 8 * torch.finfo(dtype).eps * max(1.0, v.detach().abs().sum().item()):
        faults.append("q = 60 and k = -59.5 do not meet at 0.5")
    return faults


class Measured(NamedTuple):
    """Median milliseconds, the spread of their middle half, those of a replay, and the bytes a pass adds at its highest."""

    ms: float
    spread: float
    device: float
    peak: int


def measure(function: Callable[..., Tensor], given: Inputs, flow: Tensor | None, rounds: int) -> Measured:
    for _ in range(3):
        once(function, given, flow)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    once(function, given, flow)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    times = clocked(lambda: once(function, given, flow), rounds)
    quarter = statistics.quantiles(times, n=4)
    device = statistics.median(clocked(recorded(function, given, flow), rounds))
    return Measured(statistics.median(times), quarter[2] - quarter[0], device, peak)


def clocked(side: Callable[[], object], rounds: int) -> list[float]:
    """Milliseconds of each call, by device events; fewer calls where they take long."""
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 5 or (len(times) < rounds and time.perf_counter() - began < 1.0):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        side()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return times


def recorded(function: Callable[..., Tensor], given: Inputs, flow: Tensor | None) -> Callable[[], object]:
    """One pass as a CUDA graph: the host takes longer to launch a small one than the device to run it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        once(function, given, flow)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        once(function, given, flow)
    return graph.replay


def floor(shape: tuple[int, int, int, int], dtype: torch.dtype, backward: bool) -> float:
    """Milliseconds that the special functions, or for one query the bytes, would take at best."""
    batch, queries, keys, size = shape
    special = batch * queries * keys * size / SPECIAL
    read = 2 * batch * keys * size * dtype.itemsize / BANDWIDTH
    return 1e3 * max(special, read if queries == 1 else 0.0) * (3 if backward else 1)


HEADER = ["name", "tiles", "pass", "shape", "dtype", "ms", "spread_ms", "device_ms", "peak_bytes", "input_bytes", "floor_ms"]
HEADER += ["over_floor", "hardware", "versions", "commit"]


Side = tuple[str, str, Callable[..., Tensor], Tiles]


def sides(shape: tuple[int, int, int, int], dtype: torch.dtype, names: str) -> list[Side]:
    """Eager, compiled and ours with every set of tiles whose name begins so."""
    found: list[Side] = [("eager", "", eager, Tiles()), ("compiled", "", torch.compile(eager, dynamic=False), Tiles())]
    for name, tiles in (ONE if shape[1] == 1 else MANY).items():
        if shape[1] == 1 or name.startswith(names):
            found.append(("ours", name, ours, tiles))
    if dtype == torch.float32 and shape[1] > 1:
        found.append(("ours", "32x64, tf32x3", ours, Tiles(precision="tf32x3")))
    return found


def time_all(
    shape: tuple[int, int, int, int], dtype: torch.dtype, backward: bool, options: argparse.Namespace
) -> list[list[object]]:
    """A row for each side, printed as soon as it is measured."""
    given = inputs(shape, dtype, backward)
    flow = torch.randn(*given[0].shape[:3], shape[3], device="cuda", dtype=dtype) if backward else None
    least, which = floor(shape, dtype, backward), "fwd+bwd" if backward else "fwd"
    rows: list[list[object]] = []
    for name, tiles, function, config in sides(shape, dtype, options.tiles):
        operator.TILES = config
        try:
            found = measure(function, given, flow, options.rounds)
        except Exception as error:  # a set of tiles that does not fit the chip is a row that says so
            print(f"{name:9} {tiles:24} {which:8} {shape!s:22} failed: {str(error).splitlines()[0]}", flush=True)
            continue
        print(
            f"{name:9} {tiles:24} {which:8} {shape!s:22} {found.ms:9.4f} ms ±{found.spread:.4f} "
            f"device {found.device:9.4f} ms {found.device / least:6.2f} x floor {found.peak / 2**20:8.1f} MiB",
            flush=True,
        )
        held = sum(each.numel() * each.element_size() for each in given)
        numbers = [f"{found.ms:.4f}", f"{found.spread:.4f}", f"{found.device:.4f}", found.peak, held, f"{least:.4f}"]
        shown, where = "x".join(map(str, shape)), [torch.cuda.get_device_name(), versions(), commit()]
        rows.append([name, tiles, which, shown, str(dtype)[6:], *numbers, f"{found.ms / least:.2f}", *where])
    operator.TILES = Tiles()
    return rows


def warm(part: str, options: argparse.Namespace) -> None:
    """Run a part of everything once, so that its kernels lie in the caches that all processes share."""
    if part in operator.DTYPES:
        for shape in SMALL:
            parity(shape, operator.DTYPES[part])
        corners(operator.DTYPES[part])
        return
    for shape in SHAPES[: options.shapes]:
        for name, tiles, function, config in sides(shape, operator.DTYPES[options.dtype], options.tiles):
            operator.TILES = config
            for backward in (False, True) if part in (tiles, f"{name} {shape}") else ():
                given = inputs(shape, operator.DTYPES[options.dtype], backward)
                once(function, given, torch.randn_like(given[0]) if backward else None)


def warm_all(options: argparse.Namespace) -> None:
    """Compile in processes side by side: for each precision of parity, each shape compiled, each set of tiles."""
    began = time.perf_counter()
    parts = [] if options.only == "time" else list(operator.DTYPES)
    for shape in SHAPES[: options.shapes] if options.only != "parity" else []:
        ours = [tiles for _, tiles, _, _ in sides(shape, operator.DTYPES[options.dtype], options.tiles)[2:]]
        parts += [f"compiled {shape}", *(tiles for tiles in ours if tiles not in parts)]
    beside = {"PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))}
    passed = ["--dtype", options.dtype, "--tiles", options.tiles, "--shapes", str(options.shapes)]
    started = [
        subprocess.Popen([sys.executable, "-c", BARE, __file__, "--warm", part, *passed], env=os.environ | beside)
        for part in parts
    ]
    for part, process in zip(parts, started, strict=True):
        if process.wait():
            print(f"warming {part} failed", flush=True)
    print(f"compiled in {time.perf_counter() - began:.0f} s", flush=True)


def versions() -> str:
    import triton

    return f"python {platform.python_version()} torch {torch.__version__} triton {triton.__version__}"


def check(dtypes: list[torch.dtype]) -> bool:
    """Print every error beside plain PyTorch's; whether all are within bounds."""
    fine = True
    for dtype in dtypes:
        for shape in SMALL:
            for name, error, theirs in parity(shape, dtype):
                bound = (2 if name == "context" else 3) * theirs + 4 * torch.finfo(dtype).eps
                fine &= error <= bound
                verdict = "ok" if error <= bound else "TOO FAR"
                print(
                    f"parity {str(dtype)[6:]:9} {shape!s:20} {name:8} {error:.2e} beside {theirs:.2e} {verdict}", flush=True
                )
        for fault in corners(dtype):
            fine = False
            print(f"parity {str(dtype)[6:]:9} {fault}", flush=True)
    return fine


def append(rows: list[list[object]]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(HEADER)
        writer.writerows(rows)
    print(f"{len(rows)} rows appended to {RESULTS.parent.name}/{RESULTS.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "time"], help="one of the two")
    parser.add_argument("--dtype", default="bfloat16", choices=list(operator.DTYPES), help="of the times")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--tiles", default="", help="only sets of tiles whose name begins so")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="only the first so many")
    parser.add_argument("--warm", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this needs a GPU, and there is none; on a CPU run tests/kernels/test_additive_gpu.py")
    torch.manual_seed(0)
    if options.warm:
        return warm(options.warm, options)
    warm_all(options)
    fine = options.only == "time" or check(list(operator.DTYPES.values()))
    rows: list[list[object]] = []
    for shape in SHAPES[: options.shapes] if options.only != "parity" else []:
        for backward in (False, True):
            rows += time_all(shape, operator.DTYPES[options.dtype], backward, options)
    if rows:
        append(rows)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
