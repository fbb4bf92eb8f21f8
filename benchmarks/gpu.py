"""Everything that is measured on a GPU: parity and benchmarks, one script after the other, in under eight minutes.

Each script runs in a process of its own, with torch and triton alone if that is all there is, and for as long as its share
of the eight minutes. It ends with exit code 1 where a script failed, found a number too far away or ran out of time; rows
are in results/ as far as it got.

    python benchmarks/gpu.py                        what `make gpu` does
    python benchmarks/gpu.py recurrent flash        these alone
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
SECONDS = {"additive": 90, "flash": 90, "recurrent": 45, "transformer": 130, "decoding_gpu": 75, "complexity": 40}
"""The share of each script; flash holds the windows of local_p too."""
BARE = "import _bare, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
"""Runs a script as it is, after what it may miss is made up for."""


def run(name: str) -> tuple[str, float]:
    """How a script ended, and how many seconds it took."""
    began = time.perf_counter()
    beside = {"PYTHONPATH": os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH"))))}
    command = [sys.executable, "-c", BARE, str(FOLDER / f"{name}.py")]
    try:
        code = subprocess.run(command, env=os.environ | beside, timeout=SECONDS[name]).returncode
    except subprocess.TimeoutExpired:
        return f"stopped after {SECONDS[name]} s", time.perf_counter() - began
    return "ok" if code == 0 else f"exit code {code}", time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SECONDS)}; without any, all")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in SECONDS]
    if unknown:
        parser.error(f"there is no GPU benchmark {unknown[0]!r}; there are {', '.join(SECONDS)}")
    ended = {}
    for name in options.names or SECONDS:
        print(f"\n{name}\n{'-' * len(name)}", flush=True)
        ended[name] = run(name)
    print()
    for name, (how, seconds) in ended.items():
        print(f"{name:12} {seconds:6.1f} s  {how}")
    sys.exit(0 if all(how == "ok" for how, _ in ended.values()) else 1)


if __name__ == "__main__":
    main()
