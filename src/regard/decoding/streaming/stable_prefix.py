"""What all hypotheses of a search agree on: the beginning that its answer has, whichever of them wins."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable


@runtime_checkable
class Fed(Protocol):
    """What each row of a step is given: its token, and the row of the step before that it grew from."""

    @property
    def tokens(self) -> Any: ...

    @property
    def parents(self) -> Any: ...


class Place(NamedTuple):
    """Where a hypothesis ended: the step and the row whose output gave its last token."""

    step: int
    row: int


def agreed(steps: Sequence[Fed], ended: Place | None = None) -> list[int]:
    """The tokens that all hypotheses for one sentence begin with, and the best that has `ended` too.

    The rows of the last step are those that still grow; the first step was given BOS. Followed back, their paths meet at one
    row, and from the beginning to there they are one. Whatever ended with a lower score can win no more, and what grows only
    gets longer: so this is a beginning of the answer, and one step later it is the same or longer.
    """
    last = len(steps) if ended is None else ended.step
    rows = set(range(len(steps[-1].tokens)))
    for step in range(len(steps) - 1, 0, -1):
        rows |= {ended.row} if ended is not None and step == last else set()
        if step <= last and len(rows) == 1:
            return _path(steps[: step + 1], rows.pop())
        rows = {int(steps[step].parents[row]) for row in rows}
    return []


def _path(steps: Sequence[Fed], row: int) -> list[int]:
    """The tokens on the way to a row of the last of these steps."""
    found = []
    for step in reversed(steps[1:]):
        found.append(int(step.tokens[row]))
        row = int(step.parents[row])
    return found[::-1]
