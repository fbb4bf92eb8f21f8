"""Patched methods of an attention while it is recorded: they compute as before, and the calls are recorded."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from torch import Tensor

from regard.attention.module import Attention
from regard.attention.stateful import Stateful
from regard.attention.types import Attended, Encoded, Memory
from regard.decoding.max_length import find_tensor
from regard.viewer.record.calls import heard
from regard.viewer.record.hooks import STATISTICS, Listening, answers_through_kernels

if TYPE_CHECKING:
    from regard.viewer.record import Recorder


def answer(
    recorder: "Recorder",
    name: str,
    module: Attention,
    original: Callable[..., Attended],
    query: Tensor,
    memory: Memory,
    state: Any = (),
    *,
    offset: Any = None,
    weights: bool = False,
    statistics: tuple[str, ...] = (),
    **packed: Any,
) -> Attended:
    """Let an attention answer as it was asked, and keep where it looked; `packed` are the documents of packed rows."""
    if recorder.silent:
        return original(query, memory, state, offset=offset, weights=weights, statistics=statistics, **packed)
    ear, itself = listen(recorder, name, module, query, memory, (weights, statistics))
    wanted = recorder.wanted
    formed = wanted.weights or (wanted.rows is not None and not ear.picks)
    more = () if wanted.weights else tuple(statistic for statistic in STATISTICS if statistic not in statistics)
    module.impl = ear  # type: ignore[assignment]
    try:
        requested = {"weights": weights or formed, "statistics": (*statistics, *more)}
        attended = original(query, memory, state, offset=offset, **requested, **packed)
    finally:
        module.impl = ear.impl
    begun = time.perf_counter() - ear.seconds
    call = heard(module, query, memory, offset, attended, ear, itself)
    recorder.add(name, call, ", ".join(dict.fromkeys(ear.ran)) or "its own", begun)
    left = {statistic: value for statistic, value in attended.statistics.items() if statistic not in more}
    return attended._replace(weights=attended.weights if weights else None, statistics=left)


def listen(
    recorder: "Recorder",
    name: str,
    module: Attention,
    query: Tensor,
    memory: Memory,
    requested: tuple[bool, tuple[str, ...]],
) -> tuple[Listening, bool]:
    """An ear for one call, and whether the attention looks at what asks it: a sequence at itself."""
    data = recorder.remembered.get(name, lambda: None)()
    if data is not None and data.shape == query.shape and data.data_ptr() == query.data_ptr():
        recorder.itself[name] = True
    itself = recorder.itself.setdefault(name, False)
    first = recorder.runs[-1].queries(name) if recorder.runs else 0
    real = memory.keep if itself and query.shape[1] == memory.keys.shape[2] else None
    steps, picks = isinstance(module, Stateful), answers_through_kernels(module)
    return Listening(module.impl, recorder.wanted, *requested, steps, picks, first, real), itself


def remember(
    recorder: "Recorder", name: str, original: Callable[..., Memory], encoded: Encoded | Tensor, *args: Any, **options: Any
) -> Memory:
    """Let an attention remember, and know what it remembers for as long as that is there: it may be what asks later."""
    recorder.remembered[name] = ref(encoded if isinstance(encoded, Tensor) else encoded.data)
    return original(encoded, *args, **options)


def take_step(
    recorder: "Recorder", original: Callable[..., Any], token: Tensor, memory: Any, state: Any, **options: Any
) -> Any:
    """Let a decoder write one token for each row; with more rows than sources, rows are the hypotheses of a search."""
    if not recorder.silent and len(token) != len(find_tensor(memory)):
        if not recorder.runs:
            recorder.begin()
        recorder.runs[-1].beams = True
    return original(token, memory, state, **options)
