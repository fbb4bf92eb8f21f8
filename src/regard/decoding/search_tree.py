"""The tree of a beam search: every hypothesis that was ever followed, for those who want to see why one won."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.decoding.backpointers import Ending
from regard.decoding.beam_state import Candidates
from regard.decoding.logprobs import IMPOSSIBLE


class Level(NamedTuple):
    """The hypotheses of one length: those that go on, in the order in which they are fed next, then those that ended.

    `parents` are places in the level before; those of the first level have the beginning, 0, as their parent. `looked` is
    what the step that wrote these tokens saw, one row for each parent.
    """

    parents: list[int]
    tokens: list[int]
    scores: list[float]
    ended: list[bool]
    looked: Mapping[str, Float[Tensor, "rows heads keys"]]


class Tree:
    """Filled by `beam(..., tree=tree)`, for one sentence."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.best: tuple[int, int] | None = None
        """The level and the place at which the answer ends."""

    def add(
        self,
        ahead: Candidates,
        grown: Candidates,
        ending: Bool[Tensor, "sentences candidates"],
        seen: Mapping[str, Float[Tensor, "rows heads keys"]],
    ) -> None:
        """One step of a search: all candidates, those that go on, and which of all have ended."""
        alive = (grown.scores > IMPOSSIBLE)[0]
        ended = torch.nonzero(ending[0])[:, 0]
        rows, tokens, scores = (
            [*getattr(grown, name)[0][alive].tolist(), *getattr(ahead, name)[0][ended].tolist()]
            for name in ("rows", "tokens", "scores")
        )
        over = [False] * int(alive.sum()) + [True] * len(ended)
        self.levels.append(Level(rows, tokens, scores, over, dict(seen)))

    def choose(self, ending: Ending) -> None:
        """Mark where the answer ends."""
        level = self.levels[ending.step]
        pairs = list(zip(level.parents, level.tokens, strict=True))
        self.best = ending.step, pairs.index((ending.row, ending.token))

    def follow(self, tokens: Sequence[int]) -> None:
        """Mark where another target than the one chosen ends; unmarked where it was never followed."""
        places, self.best = {0}, None
        for number, (level, token) in enumerate(zip(self.levels, tokens, strict=False), 1):
            pairs = enumerate(zip(level.parents, level.tokens, strict=True))
            places = {place for place, (parent, written) in pairs if parent in places and written == token}
            if number == len(tokens) and places:
                self.best = number - 1, min(places)
