"""Scopes that PyTorch's backends know only as a mask: sdpa, flash and flex beside what `auto` picks."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

import _bare  # noqa: F401
from _queued import Ways, measured, once, rows_of, timed, too_far
from _timing import Budget
from regard.attention import dispatch
from regard.attention.attend import run_reference
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.blocks import Blocks
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document
from regard.attention.scope.landmarks import Landmarks
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request
from regard.kernels import flash, flex, sdpa
from regard.kernels.flex_block_mask import blocks, compiled

BATCH, HEADS, LENGTH, SIZE = 4, 16, 4096, 64
NAMES = {
    "causal, half the queries": False,
    "padding": False,
    "causal, padded": False,
    "window of 128": True,
    "blocks of 512": True,
    "documents, causal": True,
    "window, landmarks": False,
}
"""Each case, and whether FlexAttention is compiled for it, which takes longest."""
OPEN: dict[Any, Any] = {}
"""Programs whose lengths were open from the first."""


def scope(name: str, length: int) -> Scope:
    """A scope by the name of its case."""
    lengths = torch.linspace(length // 2, length, BATCH, device="cuda").long()
    numbers = torch.arange(length, device="cuda").expand(BATCH, -1) // 512
    cases: dict[str, Callable[[], Scope]] = {
        "causal, half the queries": Causal,
        "padding": lambda: Padding.from_lengths(lengths, length),
        "causal, padded": lambda: Causal() & Padding.from_lengths(lengths, length),
        "window of 128": lambda: Local(128),
        "blocks of 512": lambda: Blocks(512),
        "documents, causal": lambda: Document(numbers) & Causal(),
        "window, landmarks": lambda: Local(128) | Landmarks(16),
    }
    return cases[name]()


def request(name: str, length: int = LENGTH, heads: int = HEADS, groups: int | None = None) -> Request:
    """What is asked in a case."""
    queries = length // 2 if "half" in name else length
    sides = ((heads, queries), (groups or heads, length), (groups or heads, length))
    query, keys, values = (
        torch.randn(BATCH, *each, SIZE, device="cuda", dtype=torch.bfloat16, requires_grad=True) for each in sides
    )
    return Request(query, keys, values, ScaledDot(), Softmax(), scope(name, length), 0.0, length - queries, False, ())


def by(kernel: Any, asked: Request, *given: Tensor) -> Tensor:
    """The context by one kernel, or by that which `auto` picks."""
    query, keys, values = given
    made = asked._replace(query=query, keys=keys, values=values)
    found = dispatch.select_kernel(made, "auto") if kernel is None else kernel
    reason = compiled.find_refusal(flex.build_cache_key(made)) if found is flex else None
    if reason is not None:  # another kernel would run and be taken for it
        raise RuntimeError(reason)
    return (run_reference(made) if found is None else found.run(made)).context


def by_open(asked: Request, *given: Tensor) -> Tensor:
    """The context by flex with lengths that were never built in."""
    before = compiled.PROGRAMS, compiled.DYNAMIC
    compiled.PROGRAMS, compiled.DYNAMIC = OPEN, True
    try:
        return by(flex, asked, *given)
    finally:
        compiled.PROGRAMS, compiled.DYNAMIC = before


def ways(name: str, asked: Request) -> Ways:
    """Every way of a case."""
    runs: dict[str, Any] = {"sdpa": partial(by, sdpa, asked), "flash": partial(by, flash, asked)}
    if NAMES[name]:
        runs["flex"] = partial(by, flex, asked)
    if name == "documents, causal":
        runs["flex, open"] = partial(by_open, asked)
    runs["auto"] = partial(by, None, asked)
    return {path: (run, nullcontext()) for path, run in runs.items()}


def warm(name: str) -> list[str]:
    """Compile all of a case, which stays on disk, and check it at a shorter length."""
    notes = []
    asked, short = request(name), request(name, 1024, 2)
    kernel_of = {"sdpa": sdpa, "flash": flash, "flex": flex}
    for path, (run, _) in ways(name, asked).items():
        try:
            for flow in (None, torch.randn_like(asked.query)):
                once(run, list(asked[:3]), flow)
            if path in kernel_of:
                mine = partial(by, kernel_of[path], short)
                notes += too_far(f"{path} {name}", mine, partial(reference, short), list(short[:3]))
        except Exception as error:  # met again where it is measured
            notes.append(f"{name}, {path}: {type(error).__name__}: {' '.join(str(error).split())[:120]}")
    return notes


def reference(asked: Request, *given: Tensor) -> Tensor:
    """The three stages."""
    return run_reference(asked._replace(query=given[0], keys=given[1], values=given[2])).context


def scopes(rounds: int, budget: Budget, write: Callable[..., None]) -> None:
    """Time every case, and say whom `auto` picked."""
    for name in NAMES:
        if budget.over(f"scopes {name}"):
            continue
        asked = request(name)
        for flow in (None, torch.randn_like(asked.query)):
            which = "fwd" if flow is None else "fwd+bwd"
            found = measured(name, ways(name, asked), list(asked[:3]), flow, rounds)
            fastest = min(each.ms for path, each in found.items() if path != "auto")
            told = ", ".join(f"{path} {each.ms:.4f}" for path, each in found.items())
            chosen = dispatch.select_kernel(asked, "auto")
            picked = next((each for each, kernel in dispatch.KERNELS.items() if kernel is chosen), "reference")
            print(f"scopes {name:26} {which:7} {told}; auto is {picked}, {found['auto'].ms / fastest:.3f}", flush=True)
            write(*rows_of("scopes", name, which, found, fastest))
        made = timed(lambda asked=asked: blocks.build_block_mask(asked), 3)
        print(f"scopes {name:26} tiles found in {made.ms:.3f} ms, host {made.host:.0f} us", flush=True)
    for reason in compiled.REFUSED.values():
        print(f"scopes: flex {reason}", flush=True)
