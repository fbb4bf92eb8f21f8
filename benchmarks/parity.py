"""Parity of every kernel on a GPU: output and every gradient against double precision, in single and both half precisions.

A line for each case and precision: the error of the number that comes nearest to its bound, and the bound, twice what plain
PyTorch in the same precision is off by, three times for a gradient. `updates` are small trainings, whose losses with all
kernels and with none may part by what rounding makes of some updates. Processes compile side by side; a case that fails
says why, and the others go on. Exit code 1 where a number is too far away, a repeat leaves other bits or a case fails.
Without a GPU the cases run on a few numbers in Triton's interpreter, by tests/kernels/test_parity.py.

    python benchmarks/parity.py                                  all of it, in about a minute
    python benchmarks/parity.py flash simplex --dtype bfloat16   some of it
    python benchmarks/parity.py --shapes 2000                    shapes that are drawn (_shapes.py), in place of the cases
    python benchmarks/parity.py --shapes 2000 --seed 1 flash     others, of some kernels
    python benchmarks/parity.py --alone 3 17                     one of them again: the 17th of the family 3
"""

import argparse
import sys
import time
from collections.abc import Sequence

import torch

import _bare  # noqa: F401
import _drawn
import _parity
import _shapes
from _apart import apart

KERNELS = ("additive", "flash", "rows", "local", "brief", "simplex", "decode", "loop", "norm", "loss", "sdpa", "flex")
KERNELS += ("residual", "feedforward", "layers", "chances", "updates")
SLOW = ("updates", "flash", "simplex", "flex", "additive")
"""What takes longest to compile, and so begins first, single precision before the halves."""


def work(piece: tuple[str, str]) -> _parity.Verdict:
    return _parity.check(*piece)


def passed(kernels: Sequence[str], dtypes: Sequence[str] = tuple(_parity.DTYPES), seconds: float = 90.0) -> bool:
    """Whether all cases of these kernels are within bounds; each is printed as soon as it is known."""
    names = [name for kernel in kernels for name in _parity.names(kernel)]
    pieces = [(name, dtype) for name in names for dtype in dtypes if dtype in _parity.precisions(name)]
    pieces.sort(key=lambda piece: (piece[0].split()[0] not in SLOW, piece[1] != "float32"))
    began, bad = time.perf_counter(), 0
    for answer in apart(work, pieces, seconds):
        found, (name, dtype) = answer.found, answer.piece
        bad += bool(answer.failed) or not found.fine
        print(f"parity {name:18} {dtype:9} {found.told if found else 'FAILED'}  {answer.seconds:5.1f} s", flush=True)
        if answer.failed:
            print("    " + answer.failed.replace("\n", "\n    "), flush=True)
    taken = time.perf_counter() - began
    print(f"parity: {len(pieces) - bad} of {len(pieces)} cases within bounds, in {taken:.0f} s", flush=True)
    return bad == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=f"of {', '.join(KERNELS)}; without any, all")
    parser.add_argument("--dtype", nargs="+", choices=list(_parity.DTYPES), default=list(_parity.DTYPES))
    parser.add_argument("--seconds", type=float, help="after which what is left counts as failed: 90, for shapes 240")
    parser.add_argument("--shapes", type=int, metavar="COUNT", help="draw so many shapes in place of the cases")
    parser.add_argument("--seed", type=int, default=0, help="of the shapes")
    parser.add_argument(
        "--repeats", type=int, default=250, help="of a shape of each family, which must be equal in all bits"
    )
    parser.add_argument("--alone", type=int, nargs=2, metavar=("FAMILY", "NUMBER"), help="a shape that was told to fail")
    options = parser.parse_args()
    unknown = [each for each in options.kernels if each not in KERNELS]
    if unknown:
        parser.error(f"there is no kernel {unknown[0]!r}; there are {', '.join(KERNELS)}")
    if options.shapes and not set(options.kernels or KERNELS) & {each.kernel for each in _shapes.FAMILIES}:
        parser.error(f"no shapes are drawn for {', '.join(options.kernels)}")
    if options.alone:
        return 0 if _drawn.alone(*options.alone, options.seed) else 1
    if not torch.cuda.is_available():
        print("needs a GPU, and there is none; tests/kernels/test_parity.py runs the same in Triton's interpreter",
              file=sys.stderr)  # fmt: skip
        return 2
    from regard.kernels.runtime import capability

    for dtype in options.dtype:
        if reason := capability.find_obstacle(torch.device("cuda"), _parity.DTYPES[dtype]):
            print(f"parity {dtype}: this GPU {reason}", flush=True)
    if options.shapes:
        drawn = options.shapes, options.seed, options.repeats, options.seconds or 240.0
        return 0 if _drawn.passed(options.kernels or KERNELS, *drawn) else 1
    return 0 if passed(options.kernels or KERNELS, options.dtype, options.seconds or 90.0) else 1


if __name__ == "__main__":
    sys.exit(main())
