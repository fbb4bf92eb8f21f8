"""Everything that is measured on a GPU: parity of every kernel, then times, in under eight minutes.

Parity is parity.py: a line for each kernel, case and precision, and for small trainings, whose losses must go the same way
with all kernels and with none; a failure stops nothing. For the times every part, which is a script of that name, compiles
first, all of them side by side; then they measure one after the other, alone on the GPU. Lines are flushed and rows are in
results/ as soon as they are there, so that whoever stops it loses nothing; what a part has no time for it leaves out and
names. The parts of `curves`, lengths and whole searches, are measured where they are asked. Exit code 1 where a case or a
script failed. It needs torch and triton and nothing else; whole searches, of the curves, need what the package requires too.

    python benchmarks/gpu.py                                     what `make gpu` does
    python benchmarks/gpu.py --only parity                       in about a minute
    python benchmarks/gpu.py --only times --seconds 20           each part for 20 seconds at most
    python benchmarks/gpu.py --only curves                       in about two minutes
    python benchmarks/gpu.py --part flash simplex                the parity and the times of these
"""

import argparse
import importlib.util
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
TIMES = {"additive": 40, "dot": 60, "flash": 55, "recurrent": 25, "transformer": 95, "decode": 8, "simplex": 18, "norm": 10}
"""Seconds of measuring, or a part's share of what is left. flash holds statistics, windows, local_p and rows too."""
CURVES = {"complexity": 30, "decoding_gpu": 60}
ASKED = {
    "additive": ["--only", "time"],
    "dot": ["--only", "grid", "scopes"],
    "flash": ["--only", "window", "local_p", "statistics", "t5", "rows"],
    "recurrent": ["--only", "time"],
    "transformer": ["--only", "time"],
    "decode": ["--only", "time"],
    "simplex": ["--only", "time"],
    "norm": ["--only", "time"],
    "complexity": [],
    "decoding_gpu": [],
}
"""What a script is told, so that it measures and does no more."""
COMPILED = {"additive": 5, "dot": 5, "flash": 6, "decode": 2, "simplex": 3, "norm": 1}
"""Scripts that compile in processes of their own, and how many each has."""
KERNELS = ("additive", "flash", "rows", "local", "brief", "simplex", "decode", "loop", "norm", "loss", "sdpa", "flex")
KERNELS += ("residual", "feedforward", "layers", "chances", "updates")
PARITY, COMPILING, GRACE, WHOLE, BEGINS = 90, 60, 20, 470, 8
"""Seconds of parity, of compiling, beyond its time after which a script is stopped, after which everything is, and that a
script takes before it measures.

What parity and compiling leave of the whole may be less than all parts would like: then each has its share of it, and none
is left out. Whoever sets the seconds of each part sets the whole too."""


def command(name: str, *told: str) -> list[str]:
    return [sys.executable, "-u", str(FOLDER / f"{name}.py"), *told]


def run(name: str, limit: float, *told: str) -> tuple[str, float]:
    """How a script ended, and how many seconds it took."""
    print(f"\n{name}\n{'-' * len(name)}", flush=True)
    began = time.perf_counter()
    how = ended(started(name, *told), limit)
    return how, time.perf_counter() - began


def started(name: str, *told: str) -> "subprocess.Popen[bytes]":
    """A script, with whatever it starts in a group of its own."""
    return subprocess.Popen(command(name, *told), start_new_session=True)


def ended(process: "subprocess.Popen[bytes]", limit: float) -> str:
    """How it ended; after its time it and whatever it started are stopped."""
    try:
        code = process.wait(timeout=max(0.0, limit))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"stopped after {limit:.0f} s"
    return "ok" if code == 0 else f"exit code {code}"


def left(usual: float, end: float) -> float:
    """A time, or what is left of the whole without the grace of one part."""
    return min(usual, end - time.perf_counter() - GRACE)


def share(usual: float, after: Sequence[float], end: float) -> float:
    """The time of a part before others: what it likes, or as much less as those `after` it will have less too."""
    there = max(0.0, left(math.inf, end) - BEGINS * (1 + len(after)))
    return min(usual, there * usual / max(usual + sum(after), 1e-9))


def compiled(names: list[str], seconds: float) -> None:
    """Compile for all parts at once; what is not ready in time is compiled where it is measured."""
    began = time.perf_counter()
    told = "--compile", "alone", "--seconds", str(seconds)
    found = {name: started(name, *ASKED[name], *told, "--workers", str(COMPILED[name])) for name in names}
    for name, process in found.items():
        print(f"compiling {name}: {ended(process, seconds + GRACE - (time.perf_counter() - began))}", flush=True)


def timed(parts: dict[str, int], seconds: float | None, end: float) -> dict[str, tuple[str, float]]:
    """How every part ended."""
    compiled([name for name in parts if name in COMPILED], left(COMPILING, end))
    found = {}
    usual = list(parts.values()) if seconds is None else [seconds] * len(parts)
    for place, name in enumerate(parts):
        limit = share(usual[place], usual[place + 1 :], end)
        if limit <= 0:
            found[name] = "left out: the time is up", 0.0
            continue
        told = [*ASKED[name], *(["--compile", "never"] if name in COMPILED else [])]
        told += ["--seconds", str(limit)] if name in TIMES else []
        found[name] = run(name, limit + GRACE, *told)
    return found


def lacking() -> str | None:
    """What this machine has not got, and what to do without it, or None."""
    if missing := [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]:
        return f"needs {missing[0]}, and it is not installed; pip install {' '.join(missing)}"
    import torch

    if not torch.cuda.is_available():
        return "needs a GPU, and there is none; make test runs the same kernels in Triton's interpreter"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "times", "curves"], help="without it, parity and times")
    parser.add_argument("--part", nargs="+", default=[], metavar="NAME", help=f"of {', '.join({*KERNELS, *ASKED})}")
    parser.add_argument("--seconds", type=float, help="of each part of the times; of all of parity")
    options = parser.parse_args()
    unknown = [name for name in options.part if name not in (*KERNELS, *ASKED)]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(dict.fromkeys((*KERNELS, *ASKED)))}")
    if reason := lacking():
        print(reason, file=sys.stderr)
        return 2
    wanted = options.part or [*KERNELS, *ASKED]
    end = time.perf_counter() + (WHOLE if options.seconds is None else math.inf)
    ended: dict[str, tuple[str, float]] = {}
    kernels = [name for name in KERNELS if name in wanted]
    if options.only in (None, "parity") and kernels:
        limit = options.seconds or PARITY
        ended["parity"] = run("parity", limit + GRACE, *kernels, "--seconds", str(limit))
    for which, parts in (("times", TIMES), ("curves", CURVES)):
        if options.only == which or (options.only is None and (which == "times" or options.part)):
            ended |= timed({name: usual for name, usual in parts.items() if name in wanted}, options.seconds, end)
    print()
    for name, (how, taken) in ended.items():
        print(f"{name:12} {taken:6.1f} s  {how}", flush=True)
    return 0 if all(how == "ok" for how, _ in ended.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
