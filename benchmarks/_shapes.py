"""Parity on shapes that are drawn: how long, how many, where a window stands and what may be seen.

Triton compiles a program for precision, size of a head, kind of scope, and whether strides are multiples of 16; lengths are
told at run time. So shapes are drawn in families that have all the former in common, and thousands of them take no more
compiling than there are families. What a kernel must not read is NaN: keys that are not kept, the memory behind each head,
and what it is given to write to. Some rows may see nothing. Everything follows from seed, family and number.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import _bare  # noqa: F401
from _parity import DEVICE, DTYPES, GPU, module
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.alibi import Alibi
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.t5 import T5
from regard.attention.types import Attended, Request
from regard.kernels import additive_gpu, decode, entmax, flash, predicted_window, short

LONGEST, MEMORY = (257, 4097) if GPU else (37, 81)
"""The most queries and keys, and the most keys for one query."""
STATISTICS = ("entropy", "max", "mean_position", "received")


class Family(NamedTuple):
    """What programs are compiled for. Lengths are multiples of 16 where they are `even`, and odd numbers elsewhere."""

    kernel: str
    dtype: str
    size: int
    scope: str = ""
    heads: tuple[int, int] = (2, 2)
    even: bool = False
    also: str = ""
    lengths: tuple[int, int] = (1, LONGEST)

    @property
    def learns(self) -> bool:
        """Whether there is a way back to look at."""
        return self.kernel != "decode" and self.also != "statistics"

    def __str__(self) -> str:
        words = self.kernel, self.also, self.scope, "even" if self.even else "", f"{self.heads[0]}:{self.heads[1]}"
        return f"{' '.join(filter(None, words))} x {self.size} {self.dtype}"


class Shape(NamedTuple):
    """One of a family. `reach` is a window on either side."""

    batch: int
    queries: int
    keys: int
    offset: int
    reach: int
    seed: int


FAMILIES = (
    Family("flash", "float32", 8, "causal padded"),
    Family("flash", "float32", 64, even=True),
    Family("flash", "float16", 16, "causal", (4, 2), True),
    Family("flash", "float16", 33, "local padded"),
    Family("flash", "float16", 64, "causal", also="statistics"),
    Family("flash", "float16", 128, "padded", (6, 2), True),
    Family("flash", "float16", 64, "mask", even=True),
    Family("flash", "bfloat16", 9, "rows causal padded"),
    Family("flash", "bfloat16", 96, "local", (8, 1), True),
    Family("flash", "bfloat16", 64, "padded", also="alibi"),
    Family("flash", "bfloat16", 72, "causal", also="t5"),
    Family("flash", "bfloat16", 256),
    Family("brief", "float32", 24, "padded", lengths=(1, 15)),
    Family("brief", "float16", 64, "causal", lengths=(17, 31)),
    Family("brief", "bfloat16", 64, "causal padded", (3, 3), True, lengths=(48, 64)),
    Family("brief", "float16", 127, "padded", (3, 3), lengths=(33, 63)),
    Family("simplex", "float16", 64, "causal padded", also="sparsemax", even=True),
    Family("simplex", "bfloat16", 17, "padded", (4, 2), also="sparsemax"),
    Family("simplex", "float32", 40, "local", also="entmax"),
    Family("simplex", "float16", 128, also="entmax", even=True),
    Family("simplex", "bfloat16", 64, "padded", also="learned"),
    Family("local", "float32", 8, "padded", (1, 1)),
    Family("local", "float16", 64, "", (1, 1), True),
    Family("local", "bfloat16", 100, "padded", (1, 1), also="renormalised"),
    Family("local", "float16", 31, "padded", (1, 1), also="flat"),
    Family("additive", "float32", 24, "padded"),
    Family("additive", "float16", 8, "causal"),
    Family("additive", "float16", 64, "local padded", even=True),
    Family("additive", "bfloat16", 129, "padded", also="crowded"),
    Family("additive", "bfloat16", 256, "mask", (1, 1)),
    Family("additive", "float32", 40, "padded", also="one"),
    Family("additive", "float16", 128, "padded", also="one"),
    Family("decode", "float32", 24, "padded", (4, 2)),
    Family("decode", "float16", 64, "causal", (8, 2)),
    Family("decode", "float16", 128, "padded", (4, 4)),
    Family("decode", "bfloat16", 256, "local", (2, 1)),
    Family("norm", "float32", 24, also="batch"),
    Family("norm", "float16", 64, also="group", even=True),
    Family("norm", "bfloat16", 72, also="batch"),
    Family("norm", "float32", 40, also="group"),
)
RUNS: dict[str, Callable[[Request], Any]] = {"flash": flash.run, "brief": short.run, "simplex": entmax.run}
RUNS |= {"local": predicted_window.run, "additive": additive_gpu.run, "decode": decode.run}


def shape(family: Family, number: int, seed: int) -> Shape:
    """Drawn for a number. One in eight has one query, or one key."""
    chance = Random(f"{seed} {family} {number}")
    least, most = family.lengths

    def length(most: int) -> int:
        if family.even:
            return 16 * chance.randint(max(1, least // 16), max(1, most // 16))
        return least | 1 if chance.random() < 1 / 8 else 2 * chance.randint(least // 2, (most - 1) // 2) + 1

    queries, keys = length(most), length(MEMORY if family.kernel == "decode" or family.also == "one" else most)
    if family.kernel == "decode" or family.also == "one":
        queries = 1 if family.also == "one" else chance.choice((1, 3))
    offset = keys - queries if chance.random() < 1 / 2 else chance.randint(-queries, keys)
    return Shape(chance.randint(1, 3), queries, keys, offset, chance.randint(1, 20), chance.getrandbits(62))


class Placed(nn.Module):
    """The windows of local_m and local_p, as a stage whose parameters are the centres."""

    def __init__(self, centre: Tensor, width: int, also: str):
        super().__init__()
        self.centre, self.width, self.also = nn.Parameter(centre, requires_grad=also != "flat"), width, also

    def to(self, *_: Any) -> "Placed":  # type: ignore[override]
        """Half precision cannot count so far."""
        return self

    def told(self, request: Request) -> Request:
        """The request with the stages that a window is."""
        dimmed = GaussianWindow(Softmax(), self.centre, self.width, self.also == "renormalised")
        within = WindowScope(self.centre, self.width, request.offset)
        return request._replace(normalise=Softmax() if self.also == "flat" else dimmed, scope=within & request.scope)


def through(run: Callable[[Request], Attended], request: Request) -> Attended:
    """By windows, where there are any; what is not asked for a gradient gives none."""
    stage: object = request.normalise
    return run(stage.told(request) if isinstance(stage, Placed) else request)


def request(family: Family, drawn: Shape) -> Request:
    """Random numbers in memory that is NaN elsewhere."""
    batch, queries, keys, offset, _, _ = drawn
    dtype = DTYPES[family.dtype]
    sides = [
        surrounded(torch.randn(batch, heads, time, family.size, device=DEVICE, dtype=dtype))
        for heads, time in zip((family.heads[0], *[family.heads[1]] * 2), (queries, keys, keys), strict=True)
    ]
    scope, kept = scoped(family, drawn)
    if kept is not None:
        for side in sides[1:]:
            side.masked_fill_(~kept[:, None, :, None], torch.nan)
    first: Any = offset
    if "rows" in family.scope:
        first = torch.randint(-queries, keys + 1, (batch,), device=DEVICE)
    statistics = STATISTICS if family.also == "statistics" else ()
    return Request(sides[0], sides[1], sides[2], *stages(family, drawn), scope, 0.0, first, False, statistics)


def surrounded(data: Tensor) -> Tensor:
    """The same numbers with 16 rows of NaN behind each head."""
    batch, heads, time, size = data.shape
    room = data.new_full((batch, heads, time + 16, size), torch.nan)
    room[:, :, :time] = data
    return room[:, :, :time]


def scoped(family: Family, drawn: Shape) -> tuple[Scope, Tensor | None]:
    """What may be seen, and which keys are kept: in some rows none, in some with holes."""
    scope: Scope = Everywhere()
    kept = None
    if "causal" in family.scope:
        scope = scope & Causal()
    if "local" in family.scope:
        scope = scope & Local(drawn.reach)
    if "mask" in family.scope:
        scope = scope & Dilated(3)
    if "padded" in family.scope:
        until = torch.randint(-1, drawn.keys + 1, (drawn.batch, 1), device=DEVICE)
        kept = torch.arange(drawn.keys, device=DEVICE) < until
        kept &= torch.rand(drawn.batch, drawn.keys, device=DEVICE) < (0.7 if drawn.seed % 3 == 0 else 1.1)
        scope = scope & Padding(kept)
    return scope, kept


def stages(family: Family, drawn: Shape) -> tuple[Any, Any]:
    """Score and normaliser, with their numbers rounded to the precision asked for."""
    size, dtype = family.size, DTYPES[family.dtype]
    if family.kernel == "local":  # sixteenths, so that no rounding moves a key across a window's edge
        places = torch.randint(-64, 16 * drawn.keys + 64, (drawn.batch, drawn.queries), device=DEVICE)
        return ScaledDot(), Placed((places // 2 * 2 + 1) / 16, drawn.reach, family.also)
    scores = {"t5": lambda: module(T5(family.heads[0]), dtype), "alibi": Alibi}
    normalisers = {"sparsemax": Sparsemax, "entmax": Entmax, "learned": lambda: module(Entmax(1.3, learn=True), dtype)}
    if family.kernel == "additive":
        return module(Additive(size, size, size, heads=family.heads[0]), dtype), Softmax()
    return scores.get(family.also, ScaledDot)(), normalisers.get(family.also, Softmax)()
