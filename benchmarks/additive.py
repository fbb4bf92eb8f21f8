"""Additive attention on a GPU, beside eager PyTorch and torch.compile, and beside the floor: time and memory in one run.

Every row computes softmax(vᵀ tanh(q + k)) values from sides that are projected already, on the same fresh random numbers.
Parity comes first (parity.py), and everything is compiled in processes side by side. Times are medians by device events,
with the spread of the middle half, launched as a user would and replayed as a CUDA graph (`device`), where the host has no
part; `floor` is one special-function operation for each query, key and hidden unit, three times that with the way back, and
for one query the bytes read once. Every set of tiles is a row; rows are appended to results/additive.csv as they come.

    python benchmarks/additive.py                     all of it, on one GPU, in about a minute
    python benchmarks/additive.py --only time --tiles "by fours" --shapes 2
    python benchmarks/additive.py --dtype float32     in another precision
"""

import argparse
import importlib.util
import itertools
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import _bare  # noqa: F401
from _apart import apart
from _timing import Budget, commit, highest, on_gpu, put, staged
from parity import passed

if importlib.util.find_spec("triton") is None:  # which the next two import
    print("needs triton, and it is not installed; pip install triton, on Linux", file=sys.stderr)
    sys.exit(2)
from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.arguments import Tiles

RESULTS = Path(__file__).parent / "results" / "additive.csv"
SHAPES = [(32, 256, 256, 512), (8, 1024, 1024, 256), (64, 1, 512, 1024), (32, 64, 64, 512)]
"""Batch, queries, keys, hidden units, which are the value's dimensions too."""
MANY = {
    "by fours": Tiles(),
    "by fours, more room": Tiles(least=96 << 20, saved_scores=3.0),
    "by pairs": Tiles(four_least=1 << 30),
}
ONE = {
    "16 KiB, 2 blocks": Tiles(),
    "16 KiB, 1 block": Tiles(step_stages=1),
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


class Measured(NamedTuple):
    """Median milliseconds, the spread of their middle half, those of a replay, and the bytes a pass adds at its highest."""

    ms: float
    spread: float
    device: float
    peak: int


def measure(function: Callable[..., Tensor], given: Inputs, flow: Tensor | None, rounds: int) -> Measured:
    for _ in range(3):
        once(function, given, flow)
    peak = highest(lambda: once(function, given, flow))
    times = clocked(lambda: once(function, given, flow), rounds)
    quarter = statistics.quantiles(times, n=4)
    passes = 10 if given[0].shape[2] == 1 else 1  # one alone takes no longer than a replay does to begin
    device = statistics.median(clocked(recorded(function, given, flow, passes), rounds)) / passes
    return Measured(statistics.median(times), quarter[2] - quarter[0], device, peak)


def clocked(side: Callable[[], object], rounds: int) -> list[float]:
    """Milliseconds of each call, by device events; fewer calls where they take long."""
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 5 or (len(times) < rounds and time.perf_counter() - began < 0.3):
        times.append(on_gpu(side))
    return times


def recorded(function: Callable[..., Tensor], given: Inputs, flow: Tensor | None, passes: int) -> Callable[[], object]:
    """Passes as a CUDA graph: the host takes longer to launch a small one than the device to run it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        once(function, given, flow)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(passes):
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
    torch.compiler.reset()  # of one function no more than eight shapes are compiled, and the ninth is eager in silence
    found: list[Side] = [("eager", "", eager, Tiles()), ("compiled", "", torch.compile(eager, dynamic=False), Tiles())]
    for name, tiles in (ONE if shape[1] == 1 else MANY).items():
        if shape[1] == 1 or name.startswith(names):
            found.append(("ours", name, ours, tiles))
    if dtype == torch.float32 and shape[1] > 1:
        found.append(("ours", "by pairs, tf32x3", ours, Tiles(precision="tf32x3")))
    return found


def time_all(
    shape: tuple[int, int, int, int],
    dtype: torch.dtype,
    backward: bool,
    options: argparse.Namespace,
    budget: Budget,
    other: bool,
) -> None:
    """A row for each side, printed and written as soon as it is there: of ours the first set of tiles, or each `other`."""
    given = inputs(shape, dtype, backward)
    flow = torch.randn(*given[0].shape[:3], shape[3], device="cuda", dtype=dtype) if backward else None
    least, which = floor(shape, dtype, backward), "fwd+bwd" if backward else "fwd"
    every = sides(shape, dtype, options.tiles)
    for name, tiles, function, config in every[3:] if other else every[:3]:
        if budget.over(f"{name:9} {tiles:24} {which:8} {shape!s:22}"):
            continue
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
        put(RESULTS, HEADER, [name, tiles, which, shown, str(dtype)[6:], *numbers, f"{found.ms / least:.2f}", *where])
    operator.TILES = Tiles()


class Piece(NamedTuple):
    """What one process compiles: a side with its tiles at a shape, there and back."""

    name: str
    tiles: str
    shape: tuple[int, int, int, int]
    dtype: str


def work(piece: Piece) -> None:
    """Run it once."""
    dtype = operator.DTYPES[piece.dtype]
    for name, tiles, function, operator.TILES in sides(piece.shape, dtype, piece.tiles):
        for backward in (False, True) if (name, tiles) == (piece.name, piece.tiles) else ():
            given = inputs(piece.shape, dtype, backward)
            once(function, given, torch.randn_like(given[0]) if backward else None)
    torch.cuda.synchronize()


def compiled(options: argparse.Namespace) -> None:
    """The formula at each shape, and each set of tiles once for many queries and once for one: lengths make no program."""
    found: dict[tuple[str, str, object], Piece] = {}
    for shape in SHAPES[: options.shapes]:
        for name, tiles, _, _ in sides(shape, operator.DTYPES[options.dtype], options.tiles)[1:]:
            kind = shape if name == "compiled" else shape[1] == 1
            found.setdefault((name, tiles, kind), Piece(name, tiles, shape, options.dtype))
    for answer in apart(work, list(found.values()), options.seconds, options.workers):
        told = answer.failed or f"{answer.seconds:.1f} s"
        print(f"compiled {answer.piece.name:9} {answer.piece.tiles:24} {answer.piece.shape!s:22} {told}", flush=True)


def versions() -> str:
    import triton

    return f"python {platform.python_version()} torch {torch.__version__} triton {triton.__version__}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "time"], help="one of the two")
    parser.add_argument("--dtype", default="bfloat16", choices=list(operator.DTYPES), help="of the times")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--tiles", default="", help="only sets of tiles whose name begins so")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="only the first so many")
    staged(parser)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU, and there is none; on a CPU run tests/kernels/test_additive_gpu.py", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    if options.compile != "never" and options.only != "parity":
        compiled(options)
    if options.compile == "alone":
        return 0
    fine = options.only == "time" or passed(["additive"])
    budget = Budget(options.seconds)
    shapes = SHAPES[: options.shapes] if options.only != "parity" else []
    for other, shape, backward in itertools.product((False, True), shapes, (False, True)):  # what is asked for comes first
        time_all(shape, operator.DTYPES[options.dtype], backward, options, budget, other)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
