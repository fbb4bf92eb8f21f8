"""Calibration as a program: measures random requests, fits the coefficients, and writes the user's profile."""

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from regard.attention import dispatch, reference
from regard.attention.cost import Profile, find_own_path, name_processor, write_profile
from regard.kernels import sdpa
from regard.kernels.calibration.fit import Row, fit_profile
from regard.kernels.calibration.measure import build_raw_request, list_ways, measure_ways
from regard.kernels.calibration.sample import Limits, Sample, build_call, sample_request

REQUEST_SECONDS = 0.2
"""Seconds for the paths of a request."""
FAMILIES = {"product": 50, "additive": 20, "sparse": 14, "bias": 8, "features": 8}
"""Families with more than one path, and how often each is measured."""


def measure_rows(
    device: str,
    seed: int,
    requests: int,
    seconds: float,
    limits: Limits | None = None,
    report: Callable[[str], None] = print,
) -> list[Row]:
    """Rows of random requests, until their number or the time is reached."""
    rng = random.Random(f"calibrate {seed}")
    rows: list[Row] = []
    began = time.perf_counter()
    for number in range(requests):
        taken = time.perf_counter() - began
        if taken > seconds:
            report(f"stopped after {number} of {requests} requests: {seconds:.0f} s are over")
            break
        if number % 20 == 0:
            report(f"{number:5} of {requests} requests, {taken:5.0f} s of at most {seconds:.0f}")
        rows += measure_sample(rng, device, limits)
    return rows


def measure_sample(rng: random.Random, device: str, limits: Limits | None = None) -> list[Row]:
    """Rows of one random request, one for each path; none where there is no choice."""
    call = build_call(_sample(rng, device, limits), device)
    with torch.set_grad_enabled(call.gradient is not None):
        ways = list_ways(call)
        if len(ways) < 2:
            return []
        times = measure_ways(ways, REQUEST_SECONDS)
        request = build_raw_request(call)
        return [Row(name.partition(":")[0], *count_path(name, request), taken) for name, taken in times.items()]


def warm_kernels(device: str, seed: int, requests: int, share: tuple[int, int], seconds: float) -> None:
    """Compile the kernels of every N-th request from the I-th on, with few rows, so that they are in the cache on disk."""
    rng = random.Random(f"calibrate {seed}")
    samples = [_sample(rng, device, None) for _ in range(requests)]
    warm_samples(samples[share[0] :: share[1]], device, seconds)


def warm_samples(samples: list[Sample], device: str, seconds: float) -> None:
    """Run every kernel that covers a sample once, over a few rows of it."""
    began = time.perf_counter()
    for sample in samples:
        if time.perf_counter() - began > seconds:
            return
        with suppress(Exception):  # which is met again where it is measured
            call = build_call(sample._replace(batch=min(sample.batch, 2)), device)
            with torch.set_grad_enabled(call.gradient is not None):
                for name, way in list_ways(call).items():
                    if name != reference.NAME:
                        way()


def _sample(rng: random.Random, device: str, limits: Limits | None) -> Sample:
    family = rng.choices(list(FAMILIES), list(FAMILIES.values()))[0]
    return sample_request(rng, device, limits, family)


def count_path(name: str, request: Any) -> tuple[str, dict[str, float]]:
    """Variant and counts of a path."""
    if name == reference.NAME:
        work = reference.count_work(request)
        return work.variant, dict(work.counts)
    path, _, backend = name.partition(":")
    sdpa.FORCED[:] = [backend] if backend else []
    work = dispatch.KERNELS[path].count_work(request)  # type: ignore[attr-defined]
    sdpa.FORCED.clear()
    return work.variant, dict(work.counts)


def name_device(device: str) -> str:
    """The name of the device, by which its profile is found."""
    return torch.cuda.get_device_name() if device == "cuda" else name_processor()


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write measurements, one as JSON a line."""
    path.write_text("".join(f"{json.dumps(row._asdict())}\n" for row in rows), encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Read measurements that `write_rows` wrote."""
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line]


def calibrate(device: str, seed: int, requests: int, seconds: float, out: Path | None, rows_path: Path | None) -> Profile:
    """Measure, fit and write the profile of a device; to the user's cache where no other file is named."""
    rows = measure_rows(device, seed, requests, seconds)
    if rows_path is not None:
        write_rows(rows_path, rows)
    profile = fit_profile(name_device(device), rows, device)
    path = out or find_own_path(name_device(device))
    write_profile(path, profile)
    print(f"{len(rows)} measurements; the profile is {path}")
    return profile
