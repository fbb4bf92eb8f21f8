"""Time of every path of a request, called from Python, in turns."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.attention import dispatch, reference
from regard.attention.attend import attend, build_request
from regard.attention.score import prepare
from regard.attention.types import Memory, Request
from regard.kernels import sdpa
from regard.kernels.calibration.sample import Call
from regard.kernels.sdpa_backends import choice

Way = Callable[[], object]
QUANTILE = 0.1
"""The quantile of the times of a path that represents it: other load of a machine makes the larger ones."""

ALONE: dict[str, dict[str, dispatch.Kernel]] = {}
"""Tables of one kernel each, which live as long as decisions about them."""


def build_raw_request(call: Call) -> Request:
    """The request of a call, with prepared keys."""
    query, key, value = call.sides
    return build_request(query, Memory(prepare(call.stages["score"], key), value), **call.stages)


def attend_once(call: Call, impl: str = "auto") -> tuple[Tensor, ...]:
    """One call from Python, with its backward where there is one."""
    attended = attend(*call.sides, **call.stages, impl=impl)
    return differentiate(call, attended.context)


def differentiate(call: Call, context: Tensor) -> tuple[Tensor, ...]:
    """The gradients of a call's context, or the context where nothing has a gradient."""
    if call.gradient is None:
        return (context,)
    flow = call.gradient if context.shape == call.gradient.shape else torch.ones_like(context)
    return torch.autograd.grad(context, call.learned, flow.to(context.dtype), allow_unused=True)


def list_ways(call: Call) -> dict[str, Way]:
    """A function for every path that covers a call: kernels by name, and the reference."""
    request = build_raw_request(call)
    ways: dict[str, Way] = {}
    for path in dispatch.list_paths(request):
        if path.reason is not None or path.name == reference.NAME or path.microseconds == float("inf"):
            continue
        names = [path.name]
        if path.name == "sdpa" and has_two_backends(request):
            names = ["sdpa:cudnn", "sdpa:flash"]
        for name in names:
            ways[name] = _force(call, name)
    ways[reference.NAME] = lambda: attend_once(call, "reference")
    return ways


def has_two_backends(request: Request) -> bool:
    """True where cuDNN and the flash backend are both right."""
    if request.device not in choice.DEVICES:
        return False
    properties = choice.describe_request(request)
    return choice.choose_backends(properties).order[0] == choice.CUDNN and choice.flash_covers(properties)


def _force(call: Call, name: str) -> Way:
    """A call for which dispatch knows one kernel alone; `name` may have a backend behind a colon."""
    kernel, _, backend = name.partition(":")
    table = ALONE.setdefault(name, {kernel: dispatch.KERNELS[kernel]})
    forced = [backend] if backend else []

    def run() -> object:
        whole, dispatch.KERNELS = dispatch.KERNELS, table
        sdpa.FORCED[:] = forced
        try:
            return attend_once(call, "fused")
        finally:
            dispatch.KERNELS = whole
            sdpa.FORCED.clear()

    return run


def measure_ways(ways: dict[str, Way], seconds: float, rounds: int = 40, warm: int = 2) -> dict[str, float]:
    """Microseconds of each way, measured in turns, each after a call of its own that is not; one that fails is left out.

    On a GPU a call begins when the device is idle, and ends when it is idle again. On one thread of a CPU it is the
    processor's time, which other load does not lengthen.
    """
    times: dict[str, list[float]] = {}
    for name, way in list(ways.items()):
        try:
            for _ in range(warm):
                way()
            _synchronise()
            times[name] = []
        except Exception as error:  # a path that does not run here is not measured
            print(f"    {name} failed: {type(error).__name__}: {' '.join(str(error).split())[:150]}", flush=True)
            _free()
    began = time.perf_counter()
    while times and len(next(iter(times.values()))) < rounds:
        for name, taken in times.items():
            ways[name]()  # whose code and data the caches then hold, as where a program calls it again and again
            _synchronise()
            taken.append(_time(ways[name]))
        if time.perf_counter() - began > seconds and len(next(iter(times.values()))) >= 5:
            break
    return {name: sorted(taken)[int(QUANTILE * len(taken))] for name, taken in times.items()}


def measure_peaks(ways: dict[str, Way], names: Any) -> dict[str, int]:
    """Bytes that each way allocates on a GPU beyond what there was."""
    peaks = {}
    for name in names:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = ways[name]()
        torch.cuda.synchronize()
        peaks[name] = torch.cuda.max_memory_allocated() - before
        del result
    return peaks


def _time(way: Way) -> float:
    clock = time.process_time if torch.get_num_threads() == 1 and not torch.cuda.is_available() else time.perf_counter
    began = clock()
    way()
    _synchronise()
    return 1e6 * (clock() - began)


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _free() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
