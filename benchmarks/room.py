"""Shared memory that attention's programs take on GPUs that are not there: compiled for each, and never run.

Triton compiles for any chip, and says then what a program needs; where that is more than the chip has it raises
OutOfResources, and so does this script in its place. It prints a row for each program that started, and ends with exit
code 1 where one found no tiles that fit. Single precision takes its time: a minute for heads of 64, on one chip.

    python benchmarks/room.py --chips 75 89 --kinds float16 --sizes 64 128
"""

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

if importlib.util.find_spec("triton") is None:
    print("needs triton, and it is not installed; pip install triton, on Linux", file=sys.stderr)
    sys.exit(2)
os.environ.pop("TRITON_INTERPRET", None)

import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from regard.attention import expected_monotonic
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.score.t5 import T5
from regard.attention.types import Request
from regard.kernels import decode, entmax, flash, weights
from regard.kernels import predicted_window as windowed
from regard.kernels import short as brief
from regard.kernels.runtime import capability as chip
from regard.kernels.runtime import tiles
from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.arguments import Tiles
from regard.kernels.triton.additive.operator import attention

ROOM = {75: 64, 80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 120: 99}
"""KiB that one program may have, by compute capability: CUDA C++ Programming Guide, technical specifications."""
CACHE = tempfile.TemporaryDirectory()
"""Of what is compiled by half, and no use to others."""
STATISTICS = ("entropy", "max", "spread", "received", "uniform", "top_3")


class Absent:
    """A GPU that is not there, as Triton's compiler asks about one."""

    chip = 80

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.chip, 32)

    def get_current_device(self) -> int:
        return self.chip

    def get_current_stream(self, device: int) -> int:
        return 0


ABSENT = Absent()
STARTED: list[tuple[str, int, int, str]] = []


def compiled(
    self: Any, *given: Any, grid: Any, warmup: bool, run: Callable[..., Any] = JITFunction.run, **named: Any
) -> None:
    """In place of a launch: compile, and refuse what does not fit. Nothing comes back that could be started again."""
    program = run(self, *given, grid=grid, warmup=True, **named)
    need, limit = program.metadata.shared, ROOM[ABSENT.chip] << 10
    told = {**dict(zip(self.arg_names, given, strict=False)), **named}
    sizes = " ".join(f"{name}={told[name]}" for name in ("M", "N", "VALUES", "ROWS", "KEYS", "num_stages") if name in told)
    if need > limit:
        print(f"{'':14}{self.fn.__name__:12} {sizes:28} {need / 1024:6.1f} KiB do not fit", flush=True)
        raise OutOfResources(need, limit, "shared memory")
    STARTED.append((self.fn.__name__, need, limit, sizes))


def no_further(backend: Any, stages: dict[str, Any], *rest: Any) -> None:
    """What a program needs is known before it is assembler."""
    stages["ptx"] = lambda source, metadata: metadata.update(name="absent") or ""
    stages["cubin"] = lambda source, metadata: b""


def cases(kind: torch.dtype, size: int) -> Iterator[tuple[str, Callable[[], object] | str]]:
    """By name what to run, or the reason that it is not covered."""
    asked = [torch.empty(1, 1, 200, size, dtype=kind, requires_grad=True) for _ in range(3)]
    learned = Request(*asked, T5(1), Softmax(), Causal(), 0.1, 0, False, STATISTICS)
    yield "flash", flash.covers(learned) or (lambda: flash.run(learned).context.sum().backward())
    seen = learned._replace(statistics=(), weights=True)
    with torch.no_grad():
        yield "weights", weights.covers(seen) or (lambda: weights.run(seen._replace(query=asked[0].detach())))
    short = Request(*(each[:, :, :64] for each in asked), flash.ScaledDot(), Softmax(), Causal(), 0.0, 0, False, ())
    yield "short", brief.covers(short) or (lambda: brief.run(short).context.sum().backward())
    for queries in (20, 200):  # of one tile, and of several, whose windows are put in order
        centre = torch.zeros(1, queries, requires_grad=True)
        dimmed, query = GaussianWindow(Softmax(), centre, 8), asked[0][:, :, :queries]
        narrow = Request(query, *asked[1:], flash.ScaledDot(), dimmed, WindowScope(centre, 8), 0.1, 0, False, ())
        yield (
            "predicted_window",
            windowed.covers(narrow) or (lambda narrow=narrow: windowed.run(narrow).context.sum().backward()),
        )
    sparse = Request(*asked, flash.ScaledDot(), Entmax(1.3), Causal(), 0.1, 0, False, ())
    yield "entmax", entmax.covers(sparse) or (lambda: entmax.run(sparse).context.sum().backward())
    with torch.no_grad():
        long = Request(torch.empty(1, 16, 1, size, dtype=kind), *asked[1:], T5(16), Softmax(), Causal(), 0.0, 199, False, ())
        yield "decode", decode.covers(long) or (lambda: decode.run(long))
    walk = [torch.empty(1, 1, each, 200, requires_grad=True) for each in (20, 20, 1)]
    yield (
        "monotonic",
        expected_monotonic.covers(walk[0]) or (lambda: expected_monotonic.expect_alignment(*walk).sum().backward()),
    )
    v = torch.empty(1, size, dtype=kind, requires_grad=True)
    yield "additive", lambda: attention(*asked, v)[0].sum().backward()
    yield "additive", lambda: by_tiles(Tiles(four_least=1 << 30), lambda: attention(*asked, v)[0].sum().backward())
    yield "additive", lambda: attention(asked[0][:, :, :1], *asked[1:], v)[0].sum().backward()


def by_tiles(tiles: Tiles, run: Callable[[], object]) -> None:
    """Additive attention with other tiles than it takes."""
    operator.TILES = tiles
    try:
        run()
    finally:
        operator.TILES = Tiles()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chips", nargs="*", type=int, default=list(ROOM), help=f"of {', '.join(map(str, ROOM))}")
    parser.add_argument("--kinds", nargs="*", default=["float32", "float16", "bfloat16"])
    parser.add_argument("--sizes", nargs="*", type=int, default=[8, 24, 64, 80, 96, 128, 160, 256])
    parser.add_argument(
        "--kernels",
        nargs="*",
        default=["flash", "weights", "short", "predicted_window", "entmax", "decode", "monotonic", "additive"],
    )
    options = parser.parse_args()
    driver.set_active(ABSENT)
    knobs.cache.dir = CACHE.name
    knobs.runtime.add_stages_inspection_hook = no_further
    JITFunction.run = compiled
    flash.DEVICES = brief.DEVICES = expected_monotonic.DEVICES = ("cpu",)  # tensors are on the CPU, and nothing reads them
    chip.find_shared_memory = tiles.find_shared_memory = lambda device: ROOM[ABSENT.chip] << 10
    failed = False
    for ABSENT.chip in options.chips:
        tiles.TOO_LARGE.clear()
        for kind in options.kinds:
            for size in options.sizes:
                for name, start in cases(getattr(torch, kind), size):
                    if name in options.kernels:
                        failed |= show(f"sm_{ABSENT.chip} {kind} {size} {name}", start)
    sys.exit(failed)


def show(what: str, start: Callable[[], object] | str) -> bool:
    """Whether a case found no tiles."""
    STARTED.clear()
    print(what if callable(start) else f"{what} {start}", flush=True)
    if callable(start):
        with suppress(OutOfResources):
            start()
            for program, need, limit, sizes in STARTED:
                print(f"{'':14}{program:12} {sizes:28} {need / 1024:6.1f} KiB of {limit >> 10}", flush=True)
            return False
        print(f"{'':14}no tiles fit", flush=True)
    return callable(start)


if __name__ == "__main__":
    main()
