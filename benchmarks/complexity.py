"""Time and memory of a layer against the length of its sequence: self-attention, recurrence, convolution, restricted.

Four layers of one size read sequences of growing length, forward or with the way back: self-attention (ours, 8 heads), an
LSTM, a convolution of kernel 3, and self-attention restricted to a window of 32 (ours; on a GPU in the same heads, on a CPU
by local_m). Forward passes on a GPU are replayed as CUDA graphs. What each costs beside the
others' projections is left out: queries, keys and values are the data itself. The exponent of a curve is the slope of a
straight line through the logarithms of its last four points. Beside it stand the textbook's: Vaswani et al. 2017,
"Why Self-Attention", https://arxiv.org/abs/1706.03762. Rows are appended to results/complexity.csv, which docs/speed.py
draws.

    regard bench complexity                               on a GPU up to 16,384, on a CPU up to 4,096
    regard bench complexity --lengths 64 256 1024 4096 --backward
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

import _bare  # noqa: F401
from _timing import WHERE, Measured, append, captured, highest, measure, where
from regard.attention import attend
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.scope import Scope
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local

RESULTS = Path(__file__).parent / "results" / "complexity.csv"
HEADER = ["name", "pass", "length", "size", "batch", "dtype", "ms", "spread_ms", "peak_bytes"]
HEADER += ["time_exponent", "memory_exponent", "textbook", "sequential", "path", *WHERE]
HEADS, KERNEL, WINDOW = 8, 3, 32
GPU, CPU = [2**power for power in range(6, 15)], [2**power for power in range(6, 13)]
LAST = 4
"""How many of the longest sequences an exponent is taken from: the shorter ones take as long as it takes to begin."""


class Kind(NamedTuple):
    """A layer, and what the textbook says of it: operations, steps that wait for each other, the longest way of a signal."""

    make: Callable[[int], nn.Module]
    textbook: str
    sequential: str
    path: str


def looked(data: Tensor, scope: Scope) -> Tensor:
    """What places read of each other, in several heads."""
    heads = data.unflatten(2, (HEADS, -1)).transpose(1, 2)  # batch heads length head
    return attend(heads, heads, heads, scope=scope).context.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Every place looks at every other."""

    def forward(self, data: Tensor) -> Tensor:
        return looked(data, Everywhere())


class Restricted(nn.Module):
    """Every place looks at those at most half a window away.

    On a GPU by a scope, whose kernel reads no others; on a CPU, where that saves nothing, by gathered windows of one head.
    """

    def __init__(self, size: int):
        super().__init__()
        self.look = LocalM(size, score="dot", width=WINDOW // 2)

    def forward(self, data: Tensor) -> Tensor:
        if data.is_cuda:
            return looked(data, Local(WINDOW // 2))
        return self.look(data, self.look.remember(data)).context


class Recurrence(nn.Module):
    """One step after the other."""

    def __init__(self, size: int):
        super().__init__()
        self.lstm = nn.LSTM(size, size, batch_first=True)

    def forward(self, data: Tensor) -> Tensor:
        return self.lstm(data)[0]


class Convolution(nn.Module):
    """Every place sees its neighbours."""

    def __init__(self, size: int):
        super().__init__()
        self.inner = nn.Conv1d(size, size, KERNEL, padding=KERNEL // 2)

    def forward(self, data: Tensor) -> Tensor:
        return self.inner(data.transpose(1, 2)).transpose(1, 2)


KINDS = {
    "self-attention": Kind(lambda size: SelfAttention(), "n² d", "1", "1"),
    "recurrence": Kind(Recurrence, "n d²", "n", "n"),
    "convolution": Kind(Convolution, "k n d²", "1", "log_k n"),
    "restricted self-attention": Kind(Restricted, "r n d", "1", "n / r"),
}


def exponent(lengths: Sequence[int], found: Sequence[float]) -> float:
    """The slope of log found over log length, by least squares over what is above zero; NaN where that is one point."""
    points = [(math.log(n), math.log(y)) for n, y in zip(lengths, found, strict=True) if y > 0]
    if len(points) < 2:
        return math.nan
    mean_x, mean_y = (sum(each) / len(points) for each in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def once(layer: nn.Module, data: Tensor, backward: bool) -> object:
    """One pass over fresh-looking data; with `backward` the gradient of the data too."""
    with torch.set_grad_enabled(backward):
        found = layer(data)
        return torch.autograd.grad(found, [data, *layer.parameters()], torch.ones_like(found)) if backward else found


class Asked(NamedTuple):
    """What is measured of every layer."""

    lengths: list[int]
    size: int
    batch: int
    backward: bool
    rounds: int
    device: torch.device

    @property
    def dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32

    def sides(self, kind: Kind) -> Iterator[Callable[[], object]]:
        """A pass of a layer over data of each length."""
        layer = kind.make(self.size).to(self.device, self.dtype)
        for length in self.lengths:
            data = torch.randn(self.batch, length, self.size, device=self.device, dtype=self.dtype)
            yield partial(once, layer, data.requires_grad_(self.backward), self.backward)


def curve(name: str, asked: Asked) -> list[Measured]:
    """What each length takes."""
    if asked.device.type == "cuda" and not asked.backward:  # replayed: short ones take less than a launch
        sides = list(asked.sides(KINDS[name]))
        return [measure(captured(side), asked.rounds, seconds=1.0)._replace(peak=highest(side)) for side in sides]
    found = [measure(side, asked.rounds, seconds=1.0) for side in asked.sides(KINDS[name])]
    if asked.device.type == "cuda":
        return found
    return [each._replace(peak=peak) for each, peak in zip(found, resident(name), strict=True)]


def resident(name: str) -> list[int]:
    """Bytes that a pass adds at its highest, for each length, in a process of its own that gives all memory back at once."""
    command = [sys.executable, __file__, *sys.argv[1:], "--peaks", name]
    beside = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=beside).stdout
    return [int(each) for each in told.split()]


def peaks(name: str, asked: Asked) -> list[int]:
    """The same in this process; zeros where the system does not say."""
    marks, found = Path("/proc/self/clear_refs"), []
    for side in asked.sides(KINDS[name]):
        side()  # what is loaded on first use is not the layer's
        if marks.exists():
            marks.write_text("5")
        before = _field("VmRSS")
        side()
        found.append(max(0, _field("VmHWM") - before))
    return found


def _field(name: str) -> int:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else [f"{name} 0"]
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


def rows(name: str, asked: Asked, found: list[Measured]) -> list[list[object]]:
    """One for each length, all with the exponents of their curve."""
    kind, last = KINDS[name], slice(-LAST, None)
    time, memory = (exponent(asked.lengths[last], [getattr(each, of) for each in found[last]]) for of in ("ms", "peak"))
    shown = ", ".join(f"{length}: {each.ms:.3g} ms" for length, each in zip(asked.lengths, found, strict=True))
    said = f"textbook O({kind.textbook}), one after the other O({kind.sequential}), longest path O({kind.path})"
    print(f"{name:26} time ~ n^{time:.2f}, memory ~ n^{memory:.2f}; {said}  {shown}", flush=True)
    which, dtype = "fwd+bwd" if asked.backward else "fwd", str(asked.dtype).removeprefix("torch.")
    told = [f"{time:.3f}", f"{memory:.3f}", kind.textbook, kind.sequential, kind.path, *where()]
    return [
        [name, which, length, asked.size, asked.batch, dtype, f"{each.ms:.4f}", f"{each.spread:.4f}", each.peak, *told]
        for length, each in zip(asked.lengths, found, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    gpu = torch.cuda.is_available()
    parser.add_argument("--lengths", type=int, nargs="+", default=GPU if gpu else CPU, help="of the sequences")
    parser.add_argument("--size", type=int, default=512 if gpu else 128, help=f"of the layers, a multiple of {HEADS}")
    parser.add_argument("--batch", type=int, default=4 if gpu else 1, help="sequences side by side")
    parser.add_argument("--backward", action="store_true", help="with the way back")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--peaks", choices=list(KINDS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if len(options.lengths) < 2 or min(options.lengths) < 1 or len(set(options.lengths)) < len(options.lengths):
        parser.error(
            f"--lengths needs two or more different lengths of 1 or more, got {' '.join(map(str, options.lengths))}"
        )
    if options.size < HEADS or options.size % HEADS:
        parser.error(f"--size needs a multiple of {HEADS}, the number of heads, got {options.size}")
    torch.manual_seed(0)
    device = torch.device("cuda" if gpu else "cpu")
    asked = Asked(sorted(options.lengths), options.size, options.batch, options.backward, options.rounds, device)
    if options.peaks:
        print(*peaks(options.peaks, asked))
        return
    append(RESULTS, HEADER, [row for name in KINDS for row in rows(name, asked, curve(name, asked))])


if __name__ == "__main__":
    main()
