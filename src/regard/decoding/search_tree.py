"""Search tree of a beam search: every hypothesis that was ever active, to show why one won."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.decoding.backpointers import Ending
from regard.decoding.beam_state import Candidates
from regard.decoding.logprobs import IMPOSSIBLE


class Level(NamedTuple):
    """Hypotheses of one length: the active ones in the order of the next step, then the finished ones.

    `parents` are indices in the level before; those of the first level are 0, the root. `weights` are the attention weights
    of the step that predicted these tokens, one row for each parent.
    """

    parents: list[int]
    tokens: list[int]
    scores: list[float]
    ended: list[bool]
    weights: Mapping[str, Float[Tensor, "rows heads keys"]]


class SearchTree:
    """Search tree of one sentence, filled by `beam(..., tree=tree)`."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.best: tuple[int, int] | None = None
        """Level and index at which the answer ends."""

    def add(
        self,
        ahead: Candidates,
        grown: Candidates,
        ending: Bool[Tensor, "sentences candidates"],
        weights: Mapping[str, Float[Tensor, "rows heads keys"]],
    ) -> None:
        """Append a step of a search: all candidates, those that go on, and which of all have finished."""
        alive = (grown.scores > IMPOSSIBLE)[0]
        ended = torch.nonzero(ending[0])[:, 0]
        rows, tokens, scores = (
            [*getattr(grown, name)[0][alive].tolist(), *getattr(ahead, name)[0][ended].tolist()]
            for name in ("rows", "tokens", "scores")
        )
        over = [False] * int(alive.sum()) + [True] * len(ended)
        self.levels.append(Level(rows, tokens, scores, over, dict(weights)))

    def choose(self, ending: Ending) -> None:
        """Mark the ending of the answer."""
        level = self.levels[ending.step]
        pairs = list(zip(level.parents, level.tokens, strict=True))
        self.best = ending.step, pairs.index((ending.row, ending.token))

    def follow(self, tokens: Sequence[int]) -> None:
        """Mark the ending of another target than the chosen one; unmarked if it was never active."""
        places, self.best = {0}, None
        for number, (level, token) in enumerate(zip(self.levels, tokens, strict=False), 1):
            pairs = enumerate(zip(level.parents, level.tokens, strict=True))
            places = {place for place, (parent, written) in pairs if parent in places and written == token}
            if number == len(tokens) and places:
                self.best = number - 1, min(places)
