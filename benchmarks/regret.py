"""Regret of dispatch: the time of attend() over that of the best path, for requests drawn at random.

Shapes are log-uniform; scores, normalisers, scopes, dtypes, gradients, dropout and statistics are random, and all follow
from the seed. Every path is called from Python: `auto`, each kernel that covers the request, the reference, the formula as
one would write it (eager), the same through torch.compile (of the first --compile requests that have a formula, since
compiling takes seconds), and F.scaled_dot_product_attention where it computes the same, with its mask built beforehand. A
time is the lower decile of calls in turns, each after an untimed one, which begin and end with an idle device; on one thread
of a CPU it is the processor's time. Columns of the rows:

    auto_us, best_us     microseconds of attend(), and of the best of all paths
    best, chosen         that path, and the one that attend() selected
    regret               auto_us / best_us
    own_regret           the same over the paths that attend() can select
    memory               bytes of the selected path over the leanest path within 1.1 x of the best time (GPU only)

    regard bench regret --seed 1 --requests 300      about five minutes
"""

import argparse
import json
import math
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import _bare  # noqa: F401
from _timing import WHERE, put, where
from regard.attention import dispatch
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.workload import LATEST
from regard.kernels.calibration import measure
from regard.kernels.calibration.measure import Way
from regard.kernels.calibration.run import warm_samples
from regard.kernels.calibration.sample import CPU_LIMITS, GPU_LIMITS, Call, Sample, build_call, sample_request

HEADER = ["device", "seed", "number", "request", "auto_us", "best_us", "best", "chosen", "regret", "own_regret", "memory"]
HEADER += ["times_us", *WHERE]


def formula(sample: Sample, call: Call) -> Callable[..., Tensor] | None:
    """The attention as one would write it in PyTorch, with its mask built beforehand; None where that is not one line."""
    stages, (query, _, _) = call.stages, call.sides
    if sample.normalise != "softmax" or sample.statistics or sample.score not in ("scaled_dot", "dot", "additive"):
        return None
    score: Any = stages["score"]
    mask = stages["scope"].allowed(*query.shape[:3], sample.keys, max(sample.keys - sample.queries, 0), query.device)
    masked = None if mask is None else ~mask
    scale = sample.size**-0.5 if sample.score == "scaled_dot" else 1.0

    def compare(q: Tensor, k: Tensor) -> Tensor:
        if sample.score != "additive":
            return (q * scale) @ k.mT
        hidden = torch.tanh((q @ score.W.weight.mT)[:, :, :, None] + (k @ score.U.weight.mT)[:, :, None])
        return (hidden @ score.v.weight.mT[:, None])[..., 0]

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = compare(q, k)
        weights = torch.softmax(scores if masked is None else scores.masked_fill(masked, -math.inf), dim=-1)
        return (F.dropout(weights, sample.dropout) if sample.dropout else weights) @ v

    return run


def direct(sample: Sample, call: Call) -> Callable[..., Tensor] | None:
    """PyTorch's function, where it computes the same."""
    if sample.score not in ("scaled_dot", "dot") or sample.normalise != "softmax" or sample.statistics or sample.weights:
        return None
    scope = call.stages["scope"]
    query = call.sides[0]
    scale = None if sample.score == "scaled_dot" else 1.0
    causal = isinstance(scope, Causal) and sample.keys <= sample.queries
    mask = None
    if isinstance(scope, Padding):
        mask = scope.keep[:, None, None]
    elif not causal and not isinstance(scope, Everywhere):
        mask = scope.allowed(*query.shape[:3], sample.keys, max(sample.keys - sample.queries, 0), query.device)
    return lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=sample.dropout, is_causal=causal, scale=scale
    )


def list_rivals(sample: Sample, call: Call, compiles: bool) -> dict[str, Way]:
    """The paths outside of the package."""
    rivals: dict[str, Way] = {}
    written = formula(sample, call)
    if written is not None:
        rivals["eager"] = lambda: measure.differentiate(call, written(*call.sides))
        if compiles:
            torch._dynamo.reset()
            compiled = torch.compile(written, dynamic=False)
            rivals["torch.compile"] = lambda: measure.differentiate(call, compiled(*call.sides))
    torchs = direct(sample, call)
    if torchs is not None:
        rivals["sdpa_direct"] = lambda: measure.differentiate(call, torchs(*call.sides))
    return rivals


def find_chosen(call: Call) -> str:
    kernel = dispatch.decide(measure.build_raw_request(call)).kernel
    return next((name for name, known in dispatch.KERNELS.items() if known is kernel), "reference")


def compare(sample: Sample, device: str, compiles: bool, seconds: float) -> dict[str, Any] | None:
    """Times of all paths of one request, and what follows from them."""
    call = build_call(sample, device)
    with torch.set_grad_enabled(call.gradient is not None):
        ways: dict[str, Way] = {"auto": lambda: measure.attend_once(call)}
        ways |= measure.list_ways(call)
        ways |= list_rivals(sample, call, compiles)
        times = measure.measure_ways(ways, seconds)
        if "auto" not in times or len(times) < 2:
            return None
        auto = times["auto"]
        others = {name: taken for name, taken in times.items() if name != "auto"}
        own = {name: taken for name, taken in others.items() if name not in ("eager", "torch.compile", "sdpa_direct")}
        best = min(others, key=others.__getitem__)
        memory = None
        if device == "cuda":
            near = [name for name, taken in others.items() if taken <= 1.1 * min(others.values())]
            peaks = measure.measure_peaks(ways, ["auto", *near])
            memory = peaks["auto"] / max(1, min(peaks[name] for name in near))
        chosen = find_chosen(call)
    LATEST.clear()
    return {
        "auto_us": round(auto, 1),
        "best_us": round(others[best], 1),
        "best": best,
        "chosen": chosen,
        "regret": auto / others[best],
        "own_regret": auto / min(own.values()),
        "memory": memory,
        "times_us": json.dumps({name: round(taken, 1) for name, taken in times.items()}),
    }


def summarise(name: str, values: list[float]) -> str:
    values = sorted(values)
    if not values:
        return f"{name}: nothing measured"
    high = values[min(len(values) - 1, math.ceil(0.95 * len(values)) - 1)]
    figures = f"median {statistics.median(values):6.3f}   p95 {high:6.3f}   worst {values[-1]:6.3f}"
    return f"{name:34} {figures}   ({len(values)} requests)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=["cpu", "cuda"], default=usual)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument(
        "--compile", type=int, default=0, metavar="N", help="requests for which torch.compile is measured too"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="no more requests are begun after so many")
    parser.add_argument("--each", type=float, default=0.4, help="seconds for the paths of one request")
    parser.add_argument("--length", type=int, help="the largest number of queries or keys")
    parser.add_argument("--threads", type=int, help="of the CPU; without it, as many as PyTorch takes")
    parser.add_argument("--warm", metavar="I/N", help="compile the kernels of every N-th request from I on, and stop")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    rng = random.Random(f"regret {options.seed}")
    limits = None
    if options.length:
        base = GPU_LIMITS if options.device == "cuda" else CPU_LIMITS
        limits = base._replace(length=options.length)
    samples = [sample_request(rng, options.device, limits) for _ in range(options.requests)]
    if options.warm:
        first, step = map(int, options.warm.split("/"))
        warm_samples(samples[first::step], options.device, options.seconds)
        return
    run(samples, options)


def run(samples: list[Sample], options: argparse.Namespace) -> None:
    folder = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    results, rows, compiled = folder / "regret.csv", [], 0
    began = time.perf_counter()
    for number, sample in enumerate(samples):
        taken = time.perf_counter() - began
        if taken > options.seconds:
            print(f"stopped after {number} of {len(samples)} requests: {options.seconds:.0f} s are over")
            break
        compiles = compiled < options.compile and sample.normalise == "softmax" and not sample.statistics
        compiled += compiles
        row = compare(sample, options.device, compiles, options.each)
        if row is None:
            print(f"{number:4} {sample.name}: nothing to compare", flush=True)
            continue
        rows.append(row)
        flag = "" if row["regret"] < 1.15 else "  <--"
        print(
            f"{number:4} {row['regret']:6.2f} {row['auto_us']:9.0f} us {row['chosen']:12} best {row['best']:14} "
            f"{sample.name}{flag}",
            flush=True,
        )
        values = [options.device, options.seed, number, sample.name, *(row[name] for name in HEADER[4:12]), *where()]
        put(results, HEADER, values)
    print()
    print(summarise("regret over all paths", [row["regret"] for row in rows]))
    print(summarise("regret over the package's own paths", [row["own_regret"] for row in rows]))
    print(summarise("memory over the leanest near path", [row["memory"] for row in rows if row["memory"]]))
    print(f"rows are in {results}")


if __name__ == "__main__":
    main()
