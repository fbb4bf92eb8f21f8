"""How every benchmark of whole passes measures: medians by device events, peak memory, rows with where they come from."""

import argparse
import csv
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

WHERE = ["hardware", "versions", "commit"]


class Measured(NamedTuple):
    """Median milliseconds, the spread of their middle half, and the bytes that a pass adds at its highest."""

    ms: float
    spread: float
    peak: int


def measure(side: Callable[[], object], rounds: int, warm: int = 3, seconds: float = 8.0) -> Measured:
    """Of what a call does on the current device; fewer rounds where they would take longer than `seconds`."""
    gpu = torch.cuda.is_available()
    for _ in range(warm):
        side()
    peak = highest(side) if gpu else 0
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < rounds and (len(times) < 5 or time.perf_counter() - began < seconds):
        times.append(on_gpu(side) if gpu else on_cpu(side))
    quarter = statistics.quantiles(times, n=4)
    return Measured(statistics.median(times), quarter[2] - quarter[0], peak)


def highest(side: Callable[[], object]) -> int:
    """Bytes that a call has allocated at its highest, beyond what there was before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    side()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def on_gpu(side: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    side()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def on_cpu(side: Callable[[], object]) -> float:
    start = time.perf_counter()
    side()
    return 1e3 * (time.perf_counter() - start)


def captured(side: Callable[[], object]) -> Callable[[], object]:
    """The same as one CUDA graph; what it returned at its capture is returned each time, filled anew."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            side()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = side()

    def replay(reads: object = side) -> object:  # which holds what the graph reads
        graph.replay()
        return found

    return replay


def tried(name: str, make: Callable[[], Callable[[], object]], rounds: int) -> Measured | None:
    """What a variant takes, or None where it fails, which it says: the others go on."""
    try:
        found = measure(make(), rounds)
    except Exception as error:  # a variant that cannot run here is a finding, not the end
        print(f"{name:44} {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
        return None
    finally:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return found


def where() -> list[str]:
    """Hardware, versions and commit of a row."""
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    return [torch.cuda.get_device_name() if torch.cuda.is_available() else processor(), versions, commit()]


def processor() -> str:
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


@cache
def commit() -> str:
    """As it was when it was first asked: git looks at every file, which takes as long as a row."""
    try:
        asked = ["git", "describe", "--always", "--dirty"]
        found = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()
    except OSError:  # no git
        return "unknown"
    return found or "unknown"


def append(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    put(path, header, *rows)
    print(f"{len(rows)} rows appended to {path.parent.name}/{path.name}")


def put(path: Path, header: Sequence[str], *rows: Sequence[object]) -> None:
    """Append rows and close the file, so that whoever is stopped after it loses none; in silence."""
    path.parent.mkdir(exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([header] if fresh else [])
        writer.writerows(rows)


class Budget:
    """Time for a part: a row that it does not suffice for is named and left out."""

    def __init__(self, seconds: float):
        self.end = time.perf_counter() + seconds

    def over(self, name: str, takes: float = 0.0) -> bool:
        """Whether the time is up, or does not suffice for what `takes` some seconds; which is said of what is left out."""
        late = time.perf_counter() + takes > self.end
        if late:
            print(f"{name:60} left out: the time is up", flush=True)
        return late


def staged(parser: argparse.ArgumentParser) -> None:
    """What every script of Triton kernels is asked."""
    told = "in processes side by side; alone: and then stop; never: they have been"
    parser.add_argument("--compile", choices=["first", "alone", "never"], default="first", help=told)
    parser.add_argument("--workers", type=int, help="how many of these processes")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the times; what is left then is left out")
