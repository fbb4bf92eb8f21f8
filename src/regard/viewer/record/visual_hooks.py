"""Attentions inside a CNN, heard while they look; and what any attention says of itself."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.attention.scope import And, Not, Or
from regard.attention.types import Attended
from regard.attention.visual import Gating, Visual
from regard.viewer.record.calls import Call, half, measured, single
from regard.viewer.source import AGAIN, ITSELF

if TYPE_CHECKING:
    from regard.viewer.record import Recorder


def look_at(
    recorder: "Recorder",
    name: str,
    module: Visual,
    original: Callable[..., Attended],
    image: Tensor,
    weights: bool = True,
    keep: Tensor | None = None,
) -> Attended:
    """Let an attention inside a CNN look as it was asked to, and keep where it looked.

    What weighs parts forms its weights anyway; any other, such as a non-local block, would take another way to the same
    result if it were asked for them, so it is asked twice.
    """
    told = {} if keep is None else {"keep": keep}
    if recorder.silent:
        return original(image, weights=weights, **told)
    forms = weights or isinstance(module, Gating) or hasattr(module, "channel")
    attended, begun = original(image, weights=forms, **told), time.perf_counter()
    source, read = ITSELF, attended.weights
    if read is None:
        source = AGAIN
        with torch.no_grad(), torch.random.fork_rng(), recorder.pause():
            read = original(image, weights=True, **told).weights
    assert read is not None, "they were asked for"
    read = read.detach()
    batch, _, queries, keys = read.shape
    sums = bool(getattr(getattr(module, "normalise", None), "sums_to_one", False))
    whole = recorder.wanted.weights
    rows = None if whole else tuple(row for row in recorder.wanted.rows or () if row < queries)
    kept = read if rows is None else read[:, :, list(rows)] if rows else None
    call = Call(
        batch,
        queries,
        keys,
        source,
        None if kept is None else half(kept),
        {name: single(value) for name, value in measured(read, None, None).items()},
        sums_to_one=sums,
        rows=rows,
        grid=(image.shape[2], image.shape[3]),
    )
    recorder.add(name, call, "its own", begun)
    return attended._replace(weights=attended.weights if weights else None)


def about(module: nn.Module, kernel: str | None) -> dict[str, Any]:
    """Description of an attention, for its box in the picture of the network."""
    stages = {name: stage(getattr(module, name)) for name in ("score", "normalise", "scope") if hasattr(module, name)}
    heads = {"heads": int(getattr(module, "heads", 1))}
    return {"mechanism": type(module).__name__, **stages, **heads, **({} if kernel is None else {"kernel": kernel})}


def stage(part: Any) -> str:
    """The name of a stage; scopes that were joined keep all their names."""
    if isinstance(part, And | Or):
        return f"{stage(part.left)} {'&' if isinstance(part, And) else '|'} {stage(part.right)}"
    if isinstance(part, Not):
        return f"~{stage(part.inner)}"
    inner = getattr(part, "inner", None)
    return type(part).__name__ if inner is None or isinstance(part, type) else f"{type(part).__name__}({stage(inner)})"
