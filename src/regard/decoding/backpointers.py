"""The history of a search: every hypothesis as a path back through the steps, so that nothing is copied on the way."""

from collections.abc import Mapping
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.decoding.attention_weights import along
from regard.decoding.hypothesis import Found
from regard.tree import Tree


class Moment(NamedTuple):
    """One step: the token that each row was given, its log-probability, and the row of the step before it came from."""

    tokens: list[int]
    logprobs: list[float]
    parents: list[int]


class Ending(NamedTuple):
    """A hypothesis that grows no further: the row of a step, and the token that this row's output gave last."""

    sentence: int
    step: int
    row: int
    token: int
    logprob: float
    score: float
    normalised: float
    finished: bool


class History:
    """What was fed to the decoder at every step and, when asked for, where it looked."""

    def __init__(self, memory: Tree):
        self.memory = memory  # of all sentences, also of those that have left
        self.moments: list[Moment] = []
        self.looked: list[Mapping[str, Float[Tensor, "rows heads keys"]]] = []

    def __len__(self) -> int:
        return len(self.moments)

    def add(self, moment: Moment, seen: Mapping[str, Float[Tensor, "_ _ _"]] | None) -> None:
        """One step more."""
        self.moments.append(moment)
        if seen is not None:
            self.looked.append(seen)

    def found(self, ending: Ending, weights: bool) -> Found:
        """The whole hypothesis, from the beginning to its ending."""
        path = [ending.row]
        for moment in reversed(self.moments[1 : ending.step + 1]):
            path.append(moment.parents[path[-1]])
        path.reverse()
        given = list(zip(self.moments, path, strict=False))[1:]  # the first step was given BOS
        return Found(
            tokens=[moment.tokens[row] for moment, row in given] + [ending.token],
            score=ending.score,
            normalised=ending.normalised,
            logprobs=[moment.logprobs[row] for moment, row in given] + [ending.logprob],
            finished=ending.finished,
            weights=along(self.looked, path, self.memory, ending.sentence) if weights else None,
        )


def nothing(weights: bool) -> Found:
    """What is found where not one token is allowed."""
    return Found([], 0.0, 0.0, [], False, {} if weights else None)
