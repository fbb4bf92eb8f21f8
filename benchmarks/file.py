"""`regard predict --file`: lines a second, and whether memory grows with the file.

    python benchmarks/file.py --run runs/any --text source.txt --lines 10000 100000

The lines of the text are repeated until there are so many. Each count is answered by a process of its own, whose peak
resident memory is what the system says of it when it has ended; `grown` is how much more that is than for the first count.
With --kill the process is killed with signal 9 after that share of the lines and the same command goes on; the answers must
be those of an unbroken run, of which `equal` says whether they are. Rows go to results/file.csv.
"""

import argparse
import csv
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import torch

from attention import commit, hardware

RESULTS = Path(__file__).parent / "results" / "file.csv"


class Answered(NamedTuple):
    """How a process ended: its exit code, seconds of wall and of CPU, and the most memory that it held."""

    code: int
    wall: float
    used: float
    peak: int


def answer(run: Path, given: Path, out: Path, beam: int, until: int | None = None) -> Answered:
    """Let a process answer a file; kill it when so many bytes of answers lie there."""
    command = [sys.executable, "-m", "regard", "predict", str(run), "--file", str(given), "--out", str(out)]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--beam", str(beam), "--device", "cpu"], stderr=subprocess.DEVNULL)
    partial = out.with_name(f"{out.name}.partial")
    while until is not None and os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if partial.exists() and partial.stat().st_size >= until:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.05)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Answered(process.returncode, time.perf_counter() - start, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)


def measure(options: argparse.Namespace, folder: Path, count: int) -> tuple[Answered, str]:
    """One count; and, where it was to be killed in between, whether that changed anything."""
    given, out, again = folder / "in.txt", folder / "out.txt", folder / "again.txt"
    lines = options.text.read_text(encoding="utf-8").splitlines()
    with given.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in islice(cycle(lines), count))
    for each in (out, again):
        each.unlink(missing_ok=True)
    found = answer(options.run, given, out, options.beam)
    if found.code:
        raise SystemExit(f"regard predict ended with {found.code}")
    if not options.kill:
        return found, ""
    killed = answer(options.run, given, again, options.beam, int(options.kill * out.stat().st_size))
    if killed.code != -signal.SIGKILL or answer(options.run, given, again, options.beam).code:
        raise SystemExit("the process that was to be killed had ended, or did not go on")
    return found, str(again.read_bytes() == out.read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True, help="lines to repeat")
    parser.add_argument("--lines", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--kill", type=float, default=0.0, help="kill after this share of the answers, and go on")
    options = parser.parse_args()
    first = None
    for count in options.lines:
        with tempfile.TemporaryDirectory() as folder:
            found, equal = measure(options, Path(folder), count)
        first = found.peak if first is None else first
        row = {"lines": count, "beam": options.beam, "lines_per_second": f"{count / found.wall:.1f}"}
        row |= {"wall_s": f"{found.wall:.1f}", "cpu_s": f"{found.used:.1f}", "peak_bytes": found.peak}
        row |= {"grown": f"{found.peak / first - 1:.4f}", "equal": equal}
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        versions = f"python {platform.python_version()} torch {torch.__version__}"
        row |= {"hardware": hardware(), "versions": versions, "commit": commit()}
        fresh = not RESULTS.exists()
        with RESULTS.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row))
            if fresh:
                writer.writeheader()
            writer.writerow(row)


if __name__ == "__main__":
    main()
