"""Streaming search: yields the tokens that are decided while the search goes on."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

from regard.decoding.backpointers import make_empty_hypothesis
from regard.decoding.beam import BeamOptions, BeamSearch
from regard.decoding.constraints.state import Guard
from regard.decoding.engines.eager.beam import ArrayBeamSearch as Native
from regard.decoding.engines.types import Engine
from regard.decoding.max_length import resolve_limits
from regard.decoding.search import Searcher
from regard.models.types import Decoder
from regard.tree import Tree


def stream_decided_tokens(
    finder: Searcher, decoder: Decoder, memory: Tree, length: int, *, guard: Guard | None = None
) -> Iterator[list[int]]:
    """Yield the decided tokens of one source's answer, longer each time; the last time, the whole answer.

    The answer is that of the same search without streaming; on a GPU rounding may differ. Greedy search decides a token at
    each step. A beam decides the common prefix of all its hypotheses and the best finished one: seldom much before the end.
    """
    settings = finder.settings
    if settings.mbr != "none" or settings.beam_groups > 1:
        raise ValueError(
            f"nothing is decided before the end of a search with search.mbr={settings.mbr} and "
            f"search.beam_groups={settings.beam_groups}; it needs search.mbr=none and search.beam_groups=1"
        )
    beams = finder.beams(1, phrases=guard is not None and guard.includes)
    most = resolve_limits(length, memory)
    if len(most) != 1:
        raise ValueError(f"what is decided is told of one source, got {len(most)}; search for one at a time")
    if not most[0]:
        return iter([make_empty_hypothesis(weights=False).tokens])
    engine = finder.engine(decoder, memory, plain=guard is None)
    if engine is not None:
        return _stream_engine(engine, memory, Native(most, beams, 1, finder.penalty(beams)))
    covered = settings.coverage_penalty if beams > 1 else 0.0  # greedy search ranks nothing
    rules = BeamOptions(beams, 1, settings.length_penalty, covered, None, unknown=True, weights=False, early=True)
    return _stream_reference(BeamSearch(decoder, memory, most, rules, guard=guard), memory)


def _stream_engine(engine: Engine, memory: Tree, search: Native) -> Iterator[list[int]]:
    """Stream `engines.eager.beam`; the consumer of the generator stays out of inference mode."""
    steps, before = search.run(engine, memory, np.zeros(1, np.int64)), 0
    while True:
        with torch.inference_mode():
            fed = next(steps, None)
        if fed is None:
            break
        pool = search.pool.of(0)
        stable = find_stable_prefix([*search.steps, fed], EndPosition(*pool[0][:2]) if pool else None)
        if len(stable) > before:
            before = len(stable)
            yield stable
    yield search.backtrace_best(0)[0].tokens


def _stream_reference(search: BeamSearch, memory: Tree) -> Iterator[list[int]]:
    """Stream `decoding.beam`."""
    active, before = search.begin(memory), 0
    while active is not None:
        with torch.no_grad():
            active = search.advance(active)
        if active is None:
            break
        [[pool]] = search.pools
        stable = find_stable_prefix(
            [*search.history.steps, active.input], EndPosition(pool[0].step, pool[0].row) if pool else None
        )
        if len(stable) > before:
            before = len(stable)
            yield stable
    yield search.history.backtrace(search.answers(0)[0], weights=False).tokens


@runtime_checkable
class BackPointers(Protocol):
    """Decoder input of a step: the token of each row, and its back-pointer to a row of the step before."""

    @property
    def tokens(self) -> Any: ...

    @property
    def parents(self) -> Any: ...


class EndPosition(NamedTuple):
    """End of a hypothesis: the step and the row that predicted its last token."""

    step: int
    row: int


def find_stable_prefix(steps: Sequence[BackPointers], ended: EndPosition | None = None) -> list[int]:
    """Common prefix of all active hypotheses for one sentence, and of the best that has `ended`.

    The rows of the last step are the active ones; the first step was fed BOS. Backtraced, their paths meet at one row, and
    are one up to there. Whatever ended with a lower score cannot win, and active hypotheses only get longer: so this is a
    prefix of the answer, and grows from step to step.
    """
    last = len(steps) if ended is None else ended.step
    rows = set(range(len(steps[-1].tokens)))
    for step in range(len(steps) - 1, 0, -1):
        rows |= {ended.row} if ended is not None and step == last else set()
        if step <= last and len(rows) == 1:
            return _backtrace(steps[: step + 1], rows.pop())
        rows = {int(steps[step].parents[row]) for row in rows}
    return []


def _backtrace(steps: Sequence[BackPointers], row: int) -> list[int]:
    """Tokens on the path to a row of the last of these steps."""
    tokens = []
    for step in reversed(steps[1:]):
        tokens.append(int(step.tokens[row]))
        row = int(step.parents[row])
    return tokens[::-1]
