"""Norms over kept places on a GPU: right first, then the time and memory of a residual CNN with and without the kernel.

Parity comes first (parity.py). Then medians by device events of a pass over handwritten formulas' sizes of picture, forward
and backward by autocast to bfloat16, replayed as a CUDA graph: with every norm as PyTorch's operations, with the kernel
and channels first in memory, and with the kernel and channels last, which is what is run. Rows are appended to
results/norm.csv as they come. Exit code 1 where a number is too far.

    python benchmarks/norm.py                 all of it, on one GPU, in under a minute
    python benchmarks/norm.py --only time     without parity
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

import _bare  # noqa: F401
from _timing import WHERE, Budget, captured, put, staged, tried, where
from parity import passed
from regard.attention import masked_norm
from regard.data.image.batch import Images
from regard.models.encoders import resnet

RESULTS = Path(__file__).parent / "results" / "norm.csv"
HEADER = ["name", "shape", "pass", "norm", "dtype", "ms", "spread_ms", "peak_bytes", *WHERE]
SHAPES = ("64x96x256", "42x96x384", "10x192x768")
"""Pictures, rows and columns of pixels."""
FUSED, LAID = masked_norm.DEVICES, resnet.to_channels_last
SIDES = {"operations": ((), False), "ours, channels first": (FUSED, False), "ours": (FUSED, True)}


def pictures(shape: str) -> Images:
    """Of different sizes, in a batch of this one."""
    torch.manual_seed(0)
    count, height, width = map(int, shape.split("x"))
    tall, wide = (torch.randint(side // 2, side + 1, (count,)) for side in (height, width))
    keep = (torch.arange(height) < tall[:, None])[:, :, None] & (torch.arange(width) < wide[:, None])[:, None]
    return Images(torch.rand(count, 1, height, width).cuda(), keep.cuda())


def side(shape: str, norm: str, devices: tuple[str, ...], last: bool) -> Callable[[], object]:
    """A pass there and back as one graph."""
    masked_norm.DEVICES, resnet.to_channels_last = devices, LAID if last else lambda image: image
    given = pictures(shape)
    model = resnet.Residual(1, 256, stages=(3, 3, 3), norm=norm).cuda()

    def once() -> object:
        with torch.autocast("cuda", torch.bfloat16):
            total = model(given).data.float().square().mean()
        return torch.autograd.grad(total, list(model.parameters()))

    return captured(once)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "time"], help="without it, both")
    parser.add_argument("--rounds", type=int, default=20)
    staged(parser)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU, and there is none; tests/kernels runs the kernel in Triton's interpreter", file=sys.stderr)
        return 2
    if options.compile == "alone":
        side(SHAPES[0], "batch", FUSED, True)
        return 0
    fine = options.only == "time" or passed(["norm"])
    budget = Budget(options.seconds)
    for shape in () if options.only == "parity" else SHAPES:
        for norm in ("batch", "group"):
            for name, (devices, last) in SIDES.items():
                label = f"{name}, {norm} {shape}"
                if budget.over(label):
                    continue
                found = tried(label, lambda: side(shape, norm, devices, last), options.rounds)  # noqa: B023  # called at once
                if found is None:
                    continue
                print(f"{label:44} {found.ms:9.3f} ms ±{found.spread:.3f} {found.peak / 2**20:9.1f} MiB", flush=True)
                taken = [f"{found.ms:.4f}", f"{found.spread:.4f}", found.peak]
                put(RESULTS, HEADER, [name, shape, "fwd+bwd", norm, "bfloat16", *taken, *where()])
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
