"""Cost model of the paths that compute a request: microseconds on a device, host time included, and bytes.

    time = (call^p + work^p)^(1/p),    work = Σ_i coefficient_i x count_i

`call` is the host's time of a call; the counts (multiplications, exponentials, bytes, sequential tiles) follow from the
sizes of the request alone. On a GPU the host queues work while the device computes, so that p is above 1; on a CPU p is 1.
The coefficients of a device are a profile, a JSON file: one for each kind of device comes with the package, and `regard
bench calibrate` measures another, which lies in the user's cache and comes first. Nothing is timed while a model runs, so
that a decision is the same whenever it is made.
"""

import hashlib
import json
import platform
import re
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.errors import DamagedError
from regard.user_cache import cache_folder, find_folder, is_private

FOLDER = Path(__file__).parent / "profiles"
SHIPPED = {"cuda": "h200", "cpu": "cpu"}
"""Profile of the package for each type of device; a GPU of another kind is scaled from it by its size."""
KIND = "profiles"
FORMAT = 1
MAX_BYTES = 1 << 20
"""The largest profile that is read."""
MULTIPROCESSORS = 132
"""Those of the GPU of the profile that comes with the package."""

Counts = Mapping[str, float | int]
Coefficients = Mapping[str, float]


class Work(NamedTuple):
    """Work of one path for a request: the variant of its program, what it does, and the bytes that it allocates."""

    variant: str
    counts: Counts
    memory: float | int


class Profile(NamedTuple):
    """Coefficients of a device: microseconds for each count, by path and variant."""

    device: str
    overlap: float
    """The exponent p."""
    paths: Mapping[str, Mapping[str, Coefficients]]
    speed: float = 1.0
    """Size of this device, relative to the one that was measured."""

    def estimate(self, path: str, work: Work) -> float:
        """Microseconds of a path."""
        variants = self.paths.get(path)
        if not variants:
            return float("inf")
        coefficients = variants.get(work.variant)
        if coefficients is None:
            coefficients = variants[find_nearest(work.variant, tuple(variants))]
        call = coefficients.get("call", 0.0)
        device = sum(coefficients.get(name, 0.0) * count for name, count in work.counts.items()) / self.speed
        if self.overlap == 1 or not (call and device):
            return call + device
        return float((call**self.overlap + device**self.overlap) ** (1 / self.overlap))


@cache
def find_nearest(variant: str, known: tuple[str, ...]) -> str:
    """The known variant that has most words in common with one that was not measured, the earliest in order of letters."""
    words = variant.split("/")
    return min(known, key=lambda other: (-sum(one == two for one, two in zip(words, other.split("/"), strict=False)), other))


def estimate_microseconds(path: str, work: Work, device: torch.device) -> float:
    """The estimated time of a path for its work."""
    return find_profile(device).estimate(path, work)


def find_profile(device: torch.device) -> Profile:
    """The profile of a device: the user's own where there is one, else that of the package."""
    if device.type == "cuda":
        return _load_gpu_profile(torch.cuda.current_device() if device.index is None else device.index)
    return _load_cpu_profile(torch.get_num_threads())


@cache
def _load_gpu_profile(number: int) -> Profile:
    known = torch.cuda.get_device_properties(number)
    own = read_own_profile(known.name)
    if own is not None:
        return own
    shipped = read_profile(FOLDER / f"{SHIPPED['cuda']}.json")
    return shipped._replace(speed=known.multi_processor_count / MULTIPROCESSORS)


@cache
def _load_cpu_profile(threads: int) -> Profile:
    profile = read_own_profile(name_processor()) or read_profile(FOLDER / f"{SHIPPED['cpu']}.json")
    if "flash" in profile.paths:
        return profile
    gpu = read_profile(FOLDER / f"{SHIPPED['cuda']}.json")  # of Triton's kernels, which its interpreter can run here
    return profile._replace(paths={**gpu.paths, **profile.paths})


def find_own_path(device: str) -> Path:
    """The file of the user's profile of a device."""
    return cache_folder(KIND) / name_file(device)


def name_file(device: str) -> str:
    """The name of the file for a device."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") + ".json"


def read_own_profile(device: str) -> Profile | None:
    """The profile that `regard bench calibrate` wrote for a device; None where there is none, or none to be trusted.

    Looking for it makes no folder.
    """
    expected = find_folder(KIND) / name_file(device)
    if not expected.exists():
        return None
    path = find_own_path(device)  # which checks who can write there
    try:
        return read_profile(path) if path == expected and is_private(path) else None
    except DamagedError as error:
        warnings.warn(f"{error}; the profile of the package takes its place", RuntimeWarning, stacklevel=2)
        return None


def read_profile(path: Path) -> Profile:
    """Read a profile, whose digest has to match its content."""
    try:
        with path.open("rb") as file:
            fields = json.loads(file.read(MAX_BYTES))
        body = fields["profile"]
        if fields["format"] != FORMAT or fields["digest"] != compute_digest(body):
            raise ValueError("its digest belongs to another content")
        paths = {
            str(name): {
                str(variant): {str(count): float(coefficient) for count, coefficient in coefficients.items()}
                for variant, coefficients in variants.items()
            }
            for name, variants in body["paths"].items()
        }
        return Profile(str(body["device"]), float(body["overlap"]), paths)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{path} is no profile of a device: {error}; regard bench calibrate writes another") from error


def write_profile(path: Path, profile: Profile) -> None:
    """Write a profile with its digest."""
    from regard.io import write

    body = {"device": profile.device, "overlap": profile.overlap, "paths": profile.paths}
    text = json.dumps({"format": FORMAT, "digest": compute_digest(body), "profile": body}, indent=1, sort_keys=True)
    write(path, f"{text}\n".encode())


def compute_digest(body: Any) -> str:
    """SHA-256 of the content of a profile."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@cache
def name_processor() -> str:
    """The name of the CPU."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
