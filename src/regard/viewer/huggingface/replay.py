"""The tree of a beam search of transformers, found again from the scores that `generate` returned.

`generate` returns the best hypotheses alone, each with the row of every step that it came from (`beam_indices`). The rest of
the tree follows from the scores of every step: the rows that go on are the best continuations that have not ended. What is
found is believed only if every hypothesis that was returned is in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.data.axis import Array

NOBODY = -1e8
"""transformers gives rows that do not exist a score of -1e9."""


@dataclass(frozen=True)
class Row:
    """One hypothesis after one step: the row it goes on from, the token it writes, its score."""

    parent: int
    token: int
    score: float


@dataclass(frozen=True, eq=False)
class Tree:
    """Rows of every step. The first `width` go on, what follows them has ended."""

    width: int
    steps: tuple[tuple[Row, ...], ...]

    def find(self, tokens: Sequence[int], rows: Sequence[int]) -> tuple[int, int] | None:
        """End of a hypothesis that came from these rows, as (step, row); None where it is not in the tree."""
        at = 0
        for step, (token, row) in enumerate(zip(tokens, rows, strict=True)):
            if step and row != at:
                return None
            indices = [
                place
                for place, hypothesis in enumerate(self.steps[step])
                if (hypothesis.parent, hypothesis.token) == (row, token)
            ]
            if not indices:
                return None
            at = indices[0]
        return len(tokens) - 1, at

    @property
    def broadest(self) -> int:
        """The most rows of any step."""
        return max(map(len, self.steps))

    def parents(self) -> Array:
        """(steps, rows): the row before, -1 where there is none."""
        parents = np.full((len(self.steps), self.broadest), -1, np.int32)
        for step, rows in enumerate(self.steps):
            parents[step, : len(rows)] = [row.parent if row.score > NOBODY else -1 for row in rows]
        return parents

    def scores(self) -> Array:
        """(steps, rows): sums of log-probabilities, 0 where there is nobody."""
        scores = np.zeros((len(self.steps), self.broadest), np.float32)
        for step, rows in enumerate(self.steps):
            scores[step, : len(rows)] = [row.score if row.score > NOBODY else 0 for row in rows]
        return scores

    def ended(self) -> Array:
        """(steps, rows): True where a hypothesis finished."""
        return (np.arange(self.broadest) >= self.width) & (self.parents() >= 0)


def replay(scores: Sequence[Any], ends: Sequence[int]) -> Tree:
    """The search over one input: `scores` of each step are (rows, vocabulary), `ends` the tokens that end a text."""
    width, vocabulary = scores[0].shape
    keep = min(max(2, 1 + len(ends)) * width, width * vocabulary)
    running = scores[0].new_zeros(width)
    running[1:] = -1e9
    steps = []
    for step in scores:
        best = (step + running[:, None]).reshape(-1).topk(keep)
        reached = [
            Row(int(place) // vocabulary, int(place) % vocabulary, float(score))
            for score, place in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
        going = [row for row in reached if row.token not in ends]
        going += [Row(row.parent, row.token, -1e9) for row in reached if row.token in ends]
        ended = [row for row in reached[:width] if row.token in ends and row.score > NOBODY]
        steps.append((*going[:width], *ended))
        running = scores[0].new_tensor([row.score for row in going[:width]])
    return Tree(width, tuple(steps))
