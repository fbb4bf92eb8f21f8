"""Scaled dot-product attention on a GPU: `auto` beside every public path, over a grid of 24 shapes, in one run.

Parity comes first: the error of the context and of every gradient against double precision, beside that of plain PyTorch
in the same precision. A number further away than twice that (three times for a gradient) ends it with exit code 1.
Then medians by device events, forward and forward+backward, of

    default, flash, cudnn, efficient    PyTorch's function as it comes, and with one backend alone
    flex                                FlexAttention, compiled: at four shapes, or at all of them with --flex
    auto                                ours: attend(impl="auto")

The device sleeps while a call is queued, so that its own time is measured; what a call takes of the host is a column beside
it. A line ends with the ratio of `auto` to the fastest public path, asked to be within 1.03. Then scopes that a backend
knows only as a mask: sdpa, flash and flex (lengths built in, or open) and what `auto` picks; and the host: microseconds of
a call and of its parts, and the first call at a new length. What is compiled is compiled in parallel beforehand.

Rows are appended to results/dot.csv as they come.

    python benchmarks/dot.py                     all of it, on one GPU, in about a minute
    python benchmarks/dot.py --only grid host    some of it
"""

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import _bare  # noqa: F401
import _scoped
from _apart import apart
from _queued import HEADER, Timed, Way, Ways, measured, once, rows_of, timed, too_far
from _timing import Budget, put, staged
from regard.attention import attend, dispatch
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request
from regard.kernels import sdpa
from regard.kernels.sdpa_backends import choice
from regard.kernels.sdpa_backends.choice import set_priority

RESULTS = Path(__file__).parent / "results" / "dot.csv"
WITHIN = 1.03
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


class Shape(NamedTuple):
    """One place of the grid."""

    batch: int
    heads: int
    length: int
    size: int
    causal: bool
    dtype: torch.dtype = BF16

    @property
    def name(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        return f"{self.batch}x{self.heads}x{self.length}x{self.size} {'causal' if self.causal else 'all'} {kind}"

    @property
    def scope(self) -> Scope:
        return Causal() if self.causal else Everywhere()


GRID = [
    *(Shape(4, 16, 4096, size, causal) for size in (64, 128) for causal in (False, True)),
    *(Shape(64, 8, 512, 64, causal) for causal in (False, True)),
    *(Shape(16, 16, 1024, size, causal) for size in (64, 128) for causal in (False, True)),
    *(Shape(128, 8, 128, 64, causal) for causal in (False, True)),
    *(Shape(32, 12, 256, 64, causal) for causal in (False, True)),
    *(Shape(1, 16, 8192, 128, causal) for causal in (False, True)),
    *(Shape(8, 16, 1000, 64, causal) for causal in (False, True)),
    Shape(4, 16, 2048, 96, True),
    Shape(4, 8, 2048, 256, False),
    Shape(8, 16, 1024, 32, False),
    Shape(4, 16, 2048, 64, True, FP16),
    Shape(4, 16, 2048, 64, False, FP32),
    Shape(8, 8, 1024, 64, True, FP32),
]
FLEX = {GRID[2], *(shape for shape in GRID if shape.size == 256 or shape.dtype == FP32)}
"""Where FlexAttention is compiled at all events: one usual shape, and those that cuDNN does not take."""
PARITY = [
    Shape(2, 4, 333, 64, True),
    Shape(2, 4, 320, 128, False),
    Shape(2, 4, 704, 24, True),
    Shape(2, 4, 333, 72, False, FP16),
    Shape(2, 4, 333, 64, True, FP32),
]


def sides(shape: Shape) -> list[Tensor]:
    """Queries, keys and values as a network leaves them: heads beside each other in memory."""
    batch, heads, length, size = shape[:4]
    made = [torch.randn(batch, length, heads, size, device="cuda", dtype=shape.dtype) for _ in range(3)]
    return [each.transpose(1, 2).requires_grad_() for each in made]


def ours(scope: Scope, *given: Tensor) -> Tensor:
    return attend(*given, scope=scope).context


def flexible(shape: Shape) -> Way:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    length = shape.length
    seen = create_block_mask(lambda b, h, q, k: k <= q, None, None, length, length, "cuda") if shape.causal else None
    torch._dynamo.reset()
    run = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    return lambda query, keys, values: run(query, keys, values, block_mask=seen)


def ways(shape: Shape, flex: bool) -> Ways:
    plain: Any = partial(F.scaled_dot_product_attention, is_causal=shape.causal)
    found: Ways = {"default": (plain, nullcontext())}
    found |= {name: (plain, sdpa_kernel([backend])) for name, backend in BACKENDS.items()}
    if flex or shape in FLEX:
        found["flex"] = (flexible(shape), nullcontext())
    found["auto"] = (partial(ours, shape.scope), nullcontext())
    return found


def warm(shape: Shape) -> list[str]:
    """Compile what FlexAttention needs at a shape, which stays on disk."""
    given = sides(shape)
    try:
        for flow in (None, torch.randn_like(given[2])):
            once(flexible(shape), given, flow)
    except Exception as error:  # met again where it is measured
        return [f"{shape.name}, flex: {type(error).__name__}: {' '.join(str(error).split())[:120]}"]
    return []


def grid(rounds: int, flex: bool, budget: Budget) -> None:
    ratios: list[float] = []
    for shape in GRID:
        given = sides(shape)
        for flow in (None, torch.randn_like(given[2])):
            which = "fwd" if flow is None else "fwd+bwd"
            if budget.over(f"grid {shape.name:32} {which}"):
                continue
            found = measured(shape.name, ways(shape, flex), given, flow, rounds)
            public = min(each.ms for name, each in found.items() if name != "auto")
            ratio = found["auto"].ms / public
            told = ", ".join(f"{name} {each.ms:.4f}" for name, each in found.items())
            over = "" if ratio <= WITHIN else " OVER"
            print(f"grid {shape.name:32} {which:7} {told}; auto/fastest {ratio:.3f}{over}", flush=True)
            put(RESULTS, HEADER, *rows_of("grid", shape.name, which, found, public))
            ratios.append(ratio)
    within = sum(each <= WITHIN for each in ratios)
    print(f"grid: {within} of {len(ratios)} within {WITHIN}, the worst {max(ratios, default=0.0):.3f}", flush=True)


def host(rounds: int) -> None:
    """Microseconds of the host for a call and its parts, and milliseconds of the first call at a new length."""
    shape = Shape(8, 8, 128, 64, True)
    given = [each.detach() for each in sides(shape)]
    asked = Request(*given, ScaledDot(), Softmax(), Causal(), 0.0, 0, False, ())
    order = choice.choose_backends(choice.describe_request(asked)).order

    def around(manager: Callable[[], AbstractContextManager[Any]]) -> None:
        with manager():
            pass

    parts: dict[str, Callable[[], object]] = {
        "PyTorch's function": lambda: F.scaled_dot_product_attention(*given, is_causal=True),
        "attend": lambda: attend(*given, scope=Causal()),
        "sdpa.run": lambda: sdpa.run(asked),
        "choosing a kernel": lambda: dispatch.select_kernel(asked, "auto"),
        "kind and order": lambda: choice.choose_backends(choice.describe_request(asked)),
        "the order, there and back": lambda: around(lambda: set_priority(order)),
        "sdpa_kernel, there and back": lambda: around(lambda: sdpa_kernel(list(order), set_priority=True)),
    }
    taken = {name: timed(side, 5 * rounds).host for name, side in parts.items()}
    found = {name: Timed(each / 1e3, each) for name, each in taken.items()}
    for name, each in found.items():
        print(f"host {name:28} {each.host:7.1f} us", flush=True)
    for name, backend in BACKENDS.items():
        print(f"host first call at a new length, {name:10} {first_call(backend):.2f} ms", flush=True)
    put(RESULTS, HEADER, *rows_of("host", f"host, {shape.name}", "fwd", found, found["PyTorch's function"].ms))


def first_call(backend: SDPBackend) -> float:
    """Milliseconds, the median of five lengths that nobody asked for before."""
    taken = []
    with sdpa_kernel([backend]):
        for length in (391, 397, 401, 409, 419):
            fresh = [each.detach() for each in sides(Shape(8, 8, length, 64, True))]
            torch.cuda.synchronize()
            began = time.perf_counter()
            F.scaled_dot_product_attention(*fresh, is_causal=True)
            torch.cuda.synchronize()
            taken.append(1e3 * (time.perf_counter() - began))
    return statistics.median(taken)


def parity() -> list[str]:
    """Of `auto` without a mask, of groups of heads, and of a CUDA graph; scopes are checked where they are compiled."""
    worse = []
    for shape in PARITY:
        given = sides(shape)
        asked = Request(*given, ScaledDot(), Softmax(), shape.scope, 0.0, 0, False, ())
        worse += too_far(f"auto {shape.name}", partial(ours, shape.scope), partial(_scoped.reference, asked), given)
    for name, scope in (("causal", Causal()), ("causal, padded", None)):
        asked = _scoped.request("causal, padded", 512, 4, groups=2)
        asked = asked if scope is None else asked._replace(scope=scope)
        run = partial(_scoped.by, sdpa, asked)
        worse += too_far(f"groups of heads, {name}", run, partial(_scoped.reference, asked), list(asked[:3]))
    return worse + captured()


def captured() -> list[str]:
    """Whether a CUDA graph of `auto` gives what `auto` gives."""
    given = [each.detach() for each in sides(Shape(4, 8, 256, 64, True))]
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            ours(Causal(), *given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = ours(Causal(), *given)
    given[0].normal_()
    graph.replay()
    return [] if torch.equal(found, ours(Causal(), *given)) else ["PARITY a CUDA graph differs from its call"]


def work(piece: Shape | str) -> list[str]:
    """Compile FlexAttention at a shape of the grid, or all of a scope, whose parity is looked at too."""
    return _scoped.warm(piece) if isinstance(piece, str) else warm(piece)


def compile_all(options: argparse.Namespace) -> list[str]:
    """In parallel, with the parity of scopes; what is compiled lies on disk afterwards."""
    began = time.perf_counter()
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # processes are enough
    shapes = [shape for shape in GRID if "grid" in options.only and (options.flex or shape in FLEX)]
    names = [name for name in _scoped.NAMES if {"scopes", "parity"} & set(options.only)]
    notes = []
    for answer in apart(work, [*names, *shapes], options.seconds, options.workers):
        notes += answer.found or ([f"{answer.piece}: {answer.failed}"] if answer.failed else [])
    print(f"compiled in {time.perf_counter() - began:.1f} s", flush=True)
    return notes


def default_backend(shape: Shape) -> str:
    """What PyTorch takes by itself."""
    number = torch._fused_sdp_choice(*(each.detach() for each in sides(shape)), is_causal=shape.causal)
    return next((name for name, each in SDPBackend.__members__.items() if each.value == number), str(number))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ["parity", "grid", "scopes", "host"]
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--flex", action="store_true", help="compile FlexAttention at every shape of the grid")
    staged(parser)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU, and there is none; tests/kernels check what is chosen without one", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    warnings.simplefilter("ignore")  # a backend that does not take a shape says so at length
    print(f"{choice.find_machine(0)}; PyTorch by itself takes {default_backend(GRID[0])} at {GRID[0].name}", flush=True)
    notes = [] if options.compile == "never" else compile_all(options)
    if options.compile == "alone":
        print("\n".join(notes), flush=True)
        return 0
    notes += parity() if "parity" in options.only else []
    print("\n".join([*notes, f"parity: {sum('PARITY' in note for note in notes)} numbers too far away"]), flush=True)
    budget = Budget(options.seconds)
    if "grid" in options.only:
        grid(options.rounds, options.flex, budget)
    if "host" in options.only and not budget.over("host"):
        host(options.rounds)
    if "scopes" in options.only:
        _scoped.scopes(options.rounds, budget, partial(put, RESULTS, HEADER))
    return 1 if any("PARITY" in note for note in notes) else 0


if __name__ == "__main__":
    sys.exit(main())
