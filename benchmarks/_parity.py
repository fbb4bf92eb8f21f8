"""Whether every kernel is as near to double precision as plain PyTorch is in the same precision: the cases, and a verdict.

A case runs a kernel twice, the three stages once in the same precision and once in double. What it gives may be twice as
far from double precision as the stages are, a gradient three times, and the second run must leave the same bits, but for
PyTorch's own kernels. On a machine without a GPU the same cases run on a few numbers in Triton's interpreter.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import _bare  # noqa: F401
from regard.attention.attend import run_reference
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.blocks import Blocks
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.landmarks import Landmarks
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.alibi import Alibi
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.t5 import T5
from regard.attention.types import Request
from regard.kernels import additive_gpu, decode, entmax, flash, flex, sdpa, short, weights

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
LENGTH, LONG = (333, 3333) if GPU else (21, 50)
"""Queries and keys, which fill no whole number of tiles, and keys of a long memory."""
STATISTICS = ("entropy", "max", "mean_position", "spread", "received", "uniform", "top_3")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Found(NamedTuple):
    """What a side gives."""

    outputs: list[Tensor]
    gradients: list[Tensor]


class Verdict(NamedTuple):
    """Of the number that comes nearest to its bound: its error, the bound and its place; and whether a repeat is equal."""

    error: float
    bound: float
    place: str
    same: bool

    @property
    def fine(self) -> bool:
        """NaN is not."""
        return self.error <= self.bound and self.same

    @property
    def told(self) -> str:
        """In a line."""
        verdict = "ok" if self.fine else "TOO FAR" if self.same else "a repeat DIFFERS"
        return f"max error {self.error:.2e} of {self.bound:.2e} ({self.place}) {verdict}"


def judged(ours: Found, again: Found, plain: Found, exact: Found, terms: float = 0.0) -> Verdict:
    """The worst of all numbers. `terms` is how large those are that they are sums of, where it is known."""
    worst, ratio, same = Verdict(0.0, 0.0, "nothing", True), -1.0, True
    for kind, factor in (("outputs", 2), ("gradients", 3)):
        numbers = zip(*(getattr(each, kind) for each in (ours, again, plain, exact)), strict=True)
        for place, (mine, other, theirs, right) in enumerate(numbers):
            error, usual = (
                (each.double() - right.double()).abs().max().item() if right.numel() else 0.0 for each in (mine, theirs)
            )
            largest = right.abs().max().item() if right.numel() else 0.0
            bound = factor * usual + 4 * torch.finfo(torch.float32).eps * (1 + max(largest, terms))
            if not GPU and mine.dtype == torch.bfloat16:  # which the interpreter cuts off in place of rounding it
                bound += torch.finfo(torch.bfloat16).eps * largest
            same &= torch.equal(mine, other)
            over = error / bound if error == error else float("inf")
            if over > ratio:
                worst, ratio = Verdict(error, bound, f"{kind} {place}", True), over
    return worst._replace(same=same)


def outcome(run: Callable[[Request], Any], asked: Request, dtype: torch.dtype, learns: bool) -> Found:
    """Context, weights and statistics, and the gradients of all that has one."""
    stages = {
        name: deepcopy(stage).to(dtype) if isinstance(stage, nn.Module) else stage
        for name, stage in (("score", asked.score), ("normalise", asked.normalise))
    }
    leaves = [each.detach().to(dtype).requires_grad_(learns) for each in asked[:3]]
    with torch.set_grad_enabled(learns):
        found = run(asked._replace(query=leaves[0], keys=leaves[1], values=leaves[2], **stages))
        numbers = [each.detach() for each in (found.statistics or {}).values() if each.is_floating_point()]
        outputs = [found.context.detach(), *([] if found.weights is None else [found.weights.detach()]), *numbers]
        if not learns:
            return Found(outputs, [])
        learned = [
            each
            for stage in stages.values()
            if isinstance(stage, nn.Module)
            for each in stage.parameters()
            if each.requires_grad
        ]
        flow = torch.linspace(-3, 3, found.context.numel(), dtype=torch.float64, device=DEVICE).cos().view_as(found.context)
        given = torch.autograd.grad(found.context, [*leaves, *learned], flow.to(found.context.dtype), allow_unused=True)
    return Found(outputs, [each for each in given if each is not None])


class Case(NamedTuple):
    """A kernel and what it is asked in a precision; `learns` where it has a gradient, `ours` where repeats are promised."""

    run: Callable[[Request], Any]
    asked: Callable[[torch.dtype], Request]
    learns: bool = True
    ours: bool = True

    def __call__(self, dtype: torch.dtype) -> Verdict:
        asked = self.asked(dtype)
        mine, again, plain = (outcome(run, asked, dtype, self.learns) for run in (self.run, self.run, run_reference))
        return judged(mine, again if self.ours else mine, plain, outcome(run_reference, asked, torch.float64, self.learns))


def request(
    dtype: torch.dtype,
    score: Any = None,
    normalise: Any = None,
    scope: Any = None,
    size: int = 64,
    heads: tuple[int, int] = (4, 4),
    lengths: tuple[int, int] = (LENGTH, LENGTH),
    **told: Any,
) -> Request:
    """Two rows of random numbers; `told` is offset, weights and statistics."""
    size = size if GPU else min(size, 12)
    shapes = (heads[0], lengths[0]), (heads[1], lengths[1]), (heads[1], lengths[1])
    sides = [torch.randn(2, *each, size, device=DEVICE, dtype=dtype) for each in shapes]
    stages = score or ScaledDot(), normalise or Softmax(), scope or Everywhere()
    return Request(*sides, *stages, 0.0, told.get("offset", 0), told.get("weights", False), told.get("statistics", ()))


def padding(length: int = LENGTH) -> Padding:
    """All keys of the first row, and a quarter of those of the second."""
    return Padding(torch.arange(length, device=DEVICE)[None] < torch.tensor([[length], [length // 4]], device=DEVICE))


def packed(queries: int, keys: int) -> Document:
    """Seven documents in a row, of which queries and keys have other shares."""
    ours, theirs = (torch.arange(length, device=DEVICE) * 7 // length for length in (queries, keys))
    return Document(theirs.expand(2, -1), ours.expand(2, -1))


def module(made: nn.Module, dtype: torch.dtype) -> Any:
    """With its numbers rounded to the precision asked for."""
    return made.to(DEVICE, dtype)


def additive(dtype: torch.dtype, size: int, lengths: tuple[int, int], heads: int = 1, **told: Any) -> Request:
    """Keys are prepared: the hidden units that the queries come to."""
    score = module(Additive(size, size, size, heads=heads), dtype)
    asked = request(dtype, score, scope=told.pop("scope", None), size=size, heads=(heads, heads), lengths=lengths, **told)
    return asked if GPU or size <= 12 else asked._replace(score=module(Additive(12, 12, 12, heads=heads), dtype))


def faint(asked: Request) -> Request:
    """Both sides so small that tanh is most of what flows into v, and next to nothing beside 1.

    The kernels have it from 1 - 2 r, which in single precision is 6e-8 off whatever it is: that shows below 0.1.
    """
    least = 0.1 if asked.query.dtype == torch.float32 else 0.01
    return asked._replace(query=least * asked.query, keys=least * asked.keys)


def tiled(case: Case, **changed: Any) -> Callable[[torch.dtype], Verdict]:
    """The additive kernels by other tiles."""

    def check(dtype: torch.dtype) -> Verdict:
        from regard.kernels.triton.additive import operator

        before = operator.TILES
        operator.TILES = replace(before, **changed)
        try:
            return case(dtype)
        finally:
            operator.TILES = before

    return check


def attentions() -> dict[str, Callable[[torch.dtype], Verdict]]:
    """By name, the kernel first."""
    many, tail = (LENGTH, LENGTH), LENGTH - 3
    little = {"room": 1 << 19 if GPU else 1 << 12}
    found: dict[str, Callable[[torch.dtype], Verdict]] = {
        "additive many": Case(additive_gpu.run, lambda d: additive(d, 24, (33, 65))),
        "additive hidden": Case(additive_gpu.run, lambda d: additive(d, 129, (17, 16), 2, scope=Causal() & padding(16))),
        "additive weights": Case(additive_gpu.run, lambda d: additive(d, 256, (100, 31) if GPU else (9, 7), weights=True)),
        "additive window": Case(additive_gpu.run, lambda d: additive(d, 40, many, scope=Local(5) & Dilated(2))),
        "additive tiles": Case(additive_gpu.run, lambda d: additive(d, 24, many, scope=Blocks(64) | Landmarks(2, 50))),
        "additive crowded": tiled(
            Case(additive_gpu.run, lambda d: additive(d, 40, many, scope=Causal() & padding())), **little
        ),
        "additive padded": Case(additive_gpu.run, lambda d: additive(d, 40, many, scope=padding())),
        "additive pairs": tiled(Case(additive_gpu.run, lambda d: additive(d, 129, many, 2)), four_least=1 << 30),
        "additive faint": Case(additive_gpu.run, lambda d: faint(additive(d, 128, many))),
        "additive dim": tiled(Case(additive_gpu.run, lambda d: faint(additive(d, 128, many, 2))), **little),
        "additive one": Case(additive_gpu.run, lambda d: additive(d, 40, (1, 77), scope=padding(77))),
        "flash everywhere": Case(flash.run, lambda d: request(d)),
        "flash hidden": Case(flash.run, lambda d: request(d, scope=Causal() & padding(), size=24, offset=-3)),
        "flash grouped": Case(flash.run, lambda d: request(d, scope=Local(17), size=128, heads=(4, 2))),
        "flash mask": Case(flash.run, lambda d: request(d, scope=Dilated(3))),
        "flash t5": Case(flash.run, lambda d: request(d, module(T5(4), d), scope=Causal())),
        "flash alibi": Case(flash.run, lambda d: request(d, Alibi(), size=40)),
        "flash statistics": Case(flash.run, lambda d: request(d, scope=Causal(), statistics=STATISTICS), False),
        "flash told": Case(flash.run, lambda d: request(d, module(T5(4), d), scope=Causal(), statistics=STATISTICS), False),
        "flash wide": Case(flash.run, lambda d: request(d, size=128, statistics=STATISTICS[:4]), False),
        "rows all": Case(weights.run, lambda d: request(d, scope=Causal(), weights=True), False),
        "brief causal": Case(short.run, lambda d: request(d, scope=Causal(), lengths=(32, 32) if GPU else (9, 9))),
        "brief packed": Case(short.run, lambda d: request(d, scope=packed(33, 50), size=64, lengths=(33, 50))),
        "brief padded": Case(short.run, lambda d: request(d, scope=padding(50), size=40, lengths=(33, 50))),
        "decode all": Case(decode.run, lambda d: request(d, heads=(8, 2), lengths=(1, LONG)), False),
        "decode padded": Case(decode.run, lambda d: request(d, scope=padding(LONG), size=128, lengths=(1, LONG)), False),
        "decode few": Case(decode.run, lambda d: request(d, Alibi(), scope=Causal(), lengths=(3, LONG), offset=9), False),
        "decode weights": Case(decode.run, lambda d: request(d, lengths=(1, LONG), weights=True), False),
        "sdpa causal": Case(sdpa.run, lambda d: request(d, scope=Causal()), ours=False),
        "sdpa padded": Case(sdpa.run, lambda d: request(d, scope=padding(), heads=(4, 2)), ours=False),
    }  # fmt: skip
    normalisers: dict[str, Callable[[torch.dtype], Any]] = {
        "sparsemax": lambda d: Sparsemax(),
        "entmax": lambda d: Entmax(),
        "learned": lambda d: module(Entmax(1.3, learn=True), d),
    }
    for name, make in normalisers.items():
        scope = Causal() & padding() if name != "entmax" else Everywhere()
        found[f"simplex {name}"] = Case(
            entmax.run, lambda d, make=make, scope=scope: request(d, None, make(d), scope, offset=-3)
        )
    if GPU:  # torch.compile builds it
        asked = lambda d: request(d, scope=Blocks(64) & Causal(), lengths=(tail, tail))  # noqa: E731
        found["flex blocks"] = Case(flex.run, asked, ours=False)
    return found


def names(kernel: str) -> Iterator[str]:
    """The cases of a kernel."""
    yield from (each for each in cases() if each.split()[0] == kernel)


def precisions(name: str) -> list[str]:
    """What a case is checked in; updates as train.precision has it."""
    return ["float32", "bfloat16"] if name.startswith("updates") else list(DTYPES)


def cases() -> dict[str, Callable[[torch.dtype], Verdict]]:
    """All of them, by name."""
    import _parity_models
    import _updates

    return {**attentions(), **_parity_models.cases(), **_updates.cases()}


def check(name: str, dtype: str) -> Verdict:
    """One case in one precision."""
    torch.manual_seed(0)
    interpreted()
    return cases()[name](DTYPES[dtype])


def interpreted() -> None:
    """Without a GPU: let the kernels take the CPU, in tiles of which a few numbers fill several."""
    if GPU:
        return
    from regard.attention import expected_monotonic, masked_norm
    from regard.kernels.triton.additive import operator
    from regard.kernels.triton.additive.arguments import ReadTile, Tiles
    from regard.losses import linear_cross_entropy
    from regard.models.decoders import recurrent_fused
    from regard.models.layers import add_norm, feedforward

    for each in (
        flash,
        short,
        additive_gpu,
        recurrent_fused,
        linear_cross_entropy,
        add_norm,
        feedforward,
        masked_norm,
        expected_monotonic,
    ):
        each.DEVICES = ("cuda", "cpu")
    flash.select_tiles = entmax.select_tiles = lambda query, values: [16, 16, 4, 1]
    decode.select_tiles = lambda request: [16, 16, 4, 1]
    sizes = {"rows": 16, "columns": 16, "pairs": 2, "both": 8, "both_rows": 16}
    sizes |= {"four_rows": 16, "four_columns": 32, "four_least": 2}
    small = {"read": ReadTile(16, 16, 128, 4), "read_single": ReadTile(16, 16, 64, 4)}
    operator.TILES = Tiles(**sizes, **small, slope_columns=16)
