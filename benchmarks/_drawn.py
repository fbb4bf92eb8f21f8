"""Whether kernels are right on the shapes of _shapes.py: by the bounds of every case, and the same bits at every repeat.

A family is a piece of work for a process. A shape that fails is told with what repeats it alone.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

import _bare  # noqa: F401
from _apart import apart
from _parity import DEVICE, DTYPES, GPU, Found, Verdict, interpreted, judged, outcome
from _parity_models import mapped
from _shapes import FAMILIES, RUNS, Family, Shape, request, shape, through
from regard.attention import masked_norm
from regard.attention.attend import run_reference

DRAWS = 16
"""How often numbers are drawn for a shape whose first were too far away."""


class Looked(NamedTuple):
    """What became of the shapes of a family: those that failed, the one nearest to its bound, and programs compiled."""

    bad: list[str]
    nearest: Verdict
    programs: int


class Ready(NamedTuple):
    """Numbers that are drawn, for the kernel and for the stages in any precision.

    `terms` is how large products of queries, values and what flows into the context can be.
    """

    ours: Callable[[], Found]
    stages: Callable[[torch.dtype], Found]
    terms: float = 0.0


def ready(family: Family, drawn: Shape, turn: int = 0) -> Ready:
    """What follows from a shape's seed and how often numbers were drawn for it before."""
    torch.manual_seed(drawn.seed + turn)
    interpreted()
    return maps(family, drawn) if family.kernel == "norm" else attending(family, drawn)


def attending(family: Family, drawn: Shape) -> Ready:
    """What is NaN in memory is 0 for the stages, which multiply it by a weight of 0."""
    asked, dtype = request(family, drawn), DTYPES[family.dtype]
    clean = asked._replace(keys=torch.nan_to_num(asked.keys), values=torch.nan_to_num(asked.values))
    longest, largest = clean.values.double().norm(dim=-1).max(), max(each.abs().max().item() for each in clean[:2])
    ours = partial(outcome, partial(through, RUNS[family.kernel]), asked, dtype, family.learns)
    return Ready(
        partial(crowded, ours) if family.also == "crowded" else ours,
        lambda kind: outcome(partial(through, run_reference), clean, kind, family.learns),
        longest.item() * family.size**0.5 * largest,
    )


def crowded(ours: Callable[[], Found]) -> Found:
    """With so little room that the way back of additive attention takes several chunks."""
    from regard.kernels.triton.additive import operator

    before = operator.TILES
    operator.TILES = replace(before, room=1 << 18 if GPU else 1 << 12)
    try:
        return ours()
    finally:
        operator.TILES = before


def maps(family: Family, drawn: Shape) -> Ready:
    """A norm of maps of which some places are kept. What goes around it decides which of its numbers are above 0."""
    batch, height, width = drawn.batch, max(1, drawn.queries // 8), drawn.keys
    dtype, channels = DTYPES[family.dtype], family.size
    made = (masked_norm.BatchNorm if family.also == "batch" else masked_norm.GroupNorm)(channels).to(DEVICE)
    image, noise = (torch.randn(batch, channels, height, width, device=DEVICE, dtype=dtype) for _ in range(2))
    keep = torch.rand(batch, height, width, device=DEVICE) < (0.0 if drawn.seed % 8 == 0 else 0.8)
    around = noise + 16 * noise.sign()
    poisoned = [each.masked_fill(~keep[:, None], torch.nan) for each in (image, around)]
    return Ready(
        partial(mapped, made, *poisoned, keep, "fused", dtype), partial(mapped, made, image, around, keep, "reference")
    )


def sides(made: Ready, dtype: torch.dtype) -> list[Found]:
    """The kernel twice, the stages in the same precision, and in double."""
    with unwritten():
        twice = [made.ours(), made.ours()]
    return [*twice, made.stages(dtype), made.stages(torch.float64)]


@contextmanager
def unwritten() -> Iterator[None]:
    """While it is entered, new memory is NaN until somebody writes to it."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.use_deterministic_algorithms(False)


def check(family: Family, drawn: Shape) -> Verdict:
    """By the bounds of every case. The largest of a few numbers is luck: where they are too far away, more are drawn for
    all sides, and judged together."""
    made, dtype = ready(family, drawn), DTYPES[family.dtype]
    found = sides(made, dtype)
    first = judged(*found, terms=terms(found[-1], made))
    if first.fine or not first.same or first.error != first.error:
        return first
    more = joined([found, *(sides(ready(family, drawn, turn), dtype) for turn in range(1, DRAWS))])
    return judged(*more, terms=terms(more[-1], made))


def terms(exact: Found, made: Ready) -> float:
    """How large the numbers are whose differences gradients are.

    Where every query sees one key, those of queries and keys are 0. In plain steps nothing is left of them; a kernel that
    takes the difference of two sums, as flash does, is off by what these are rounded to.
    """
    largest = [each.abs().max().item() if each.numel() else 0.0 for each in exact.gradients]
    alone = max(largest[:2], default=0.0) <= 1e-12 * made.terms
    return max([*largest, made.terms if alone else 0.0])


def joined(draws: list[list[Found]]) -> list[Found]:
    """All numbers of several draws, side by side."""
    found = []
    for side in zip(*draws, strict=True):
        outputs, gradients = (zip(*(getattr(each, kind) for each in side), strict=True) for kind in Found._fields)
        found.append(
            Found(*([torch.cat([data.flatten() for data in each]) for each in kind] for kind in (outputs, gradients)))
        )
    return found


def repeated(family: Family, drawn: Shape, times: int) -> bool:
    """Whether a kernel leaves the same bits so many times."""
    ours = ready(family, drawn).ours
    first = flat(ours())
    return all(all(map(torch.equal, first, flat(ours()))) for _ in range(times - 1))


def flat(found: Found) -> list[Tensor]:
    """Outputs and gradients."""
    return [*found.outputs, *found.gradients]


def look(piece: tuple[int, int, int, int]) -> Looked:
    """At so many shapes of a family."""
    place, count, seed, repeats = piece
    family, before = FAMILIES[place], compiled()
    drawn = [shape(family, number, seed) for number in range(count)]
    bad, nearest = [], Verdict(0.0, 1.0, "nothing", True)
    for number, each in enumerate(drawn):
        name = f"--alone {place} {number} --seed {seed}: {each}"
        try:
            found = check(family, each)
        except Exception as error:  # what follows in this process may be wrong
            raise RuntimeError(f"{name}: {error}") from error
        if not found.fine:
            bad.append(f"{name}: {found.told}")
        elif found.error * nearest.bound > nearest.error * found.bound:
            nearest = found
    if drawn and not repeated(family, drawn[0], repeats):
        bad.append(f"--alone {place} 0 --seed {seed}: {drawn[0]}: {repeats} repeats DIFFER")
    return Looked(bad, nearest, compiled() - before)


def compiled() -> int:
    """How many programs this process has compiled, or found compiled; the interpreter compiles none."""
    modules = [each for name, each in list(sys.modules.items()) if name.startswith("regard.attention.dispatch")]
    programs = {id(each): each for module in modules for each in vars(module).values() if hasattr(each, "device_caches")}
    return sum(len(caches[0]) for each in programs.values() for caches in each.device_caches.values())


def pieces(kernels: Sequence[str], count: int, seed: int, repeats: int) -> list[tuple[int, int, int, int]]:
    """So many shapes, spread over the families of these kernels; single precision, which compiles longest, first."""
    places = [place for place, family in enumerate(FAMILIES) if family.kernel in kernels]
    some = [count // len(places) + (number < count % len(places)) for number in range(len(places))]
    found = [(place, each, seed, repeats) for place, each in zip(places, some, strict=True) if each]
    return sorted(found, key=lambda piece: FAMILIES[piece[0]].dtype != "float32")


def passed(kernels: Sequence[str], count: int, seed: int, repeats: int, seconds: float) -> bool:
    """Whether so many drawn shapes are within bounds; a family is told as soon as it is known."""
    work = pieces(kernels, count, seed, repeats)
    began, bad, programs = time.perf_counter(), 0, 0
    for answer in apart(look, work, seconds):
        place, some, _, _ = answer.piece
        found = answer.found or Looked([answer.failed], Verdict(torch.nan, 0.0, "nothing", True), 0)
        bad += some if answer.failed else len(found.bad)
        programs += found.programs
        said = "FAILED" if answer.failed else found.nearest.told
        print(f"shapes {place:2} {FAMILIES[place]!s:50} {some:4} {said}  {answer.seconds:5.1f} s", flush=True)
        for each in found.bad:
            print("    " + each.replace("\n", "\n    "), flush=True)
    taken = f"{len(work)} families, {programs} programs, in {time.perf_counter() - began:.0f} s"
    print(
        f"shapes: {count - bad} of {count} within bounds, {repeats} repeats of each family, seed {seed}, {taken}", flush=True
    )
    return bad == 0


def alone(place: int, number: int, seed: int) -> bool:
    """Whether one shape is within bounds. Without a GPU lengths are shorter, and in Triton's interpreter."""
    family = FAMILIES[place]
    drawn = shape(family, number, seed)
    found = check(family, drawn)
    print(f"{family}: {drawn}: {found.told}")
    return found.fine
