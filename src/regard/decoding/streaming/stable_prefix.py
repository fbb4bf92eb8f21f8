"""Stable prefix: the tokens that all hypotheses of a search begin with, whichever wins."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable


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
    found = []
    for step in reversed(steps[1:]):
        found.append(int(step.tokens[row]))
        row = int(step.parents[row])
    return found[::-1]
