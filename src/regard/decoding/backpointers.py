"""Back-pointers of a search: every hypothesis is a path back through the steps, so that nothing is copied."""

from collections.abc import Mapping
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.decoding.attention_weights import collect_path_weights
from regard.decoding.hypothesis import Hypothesis
from regard.tree import Tree


class SearchStep(NamedTuple):
    """Step of a search: the token fed to each row, its log-probability, and its back-pointer to a row of the last step."""

    tokens: list[int]
    logprobs: list[float]
    parents: list[int]


class Ending(NamedTuple):
    """Final step of a hypothesis: the step and row that predicted its last token."""

    sentence: int
    step: int
    row: int
    token: int
    logprob: float
    score: float
    normalised: float
    finished: bool


class History:
    """Back-pointer history: the tokens fed to the decoder at every step and, if asked for, attention weights."""

    def __init__(self, memory: Tree):
        self.memory = memory  # of all sentences, finished ones included
        self.steps: list[SearchStep] = []
        self.weights: list[Mapping[str, Float[Tensor, "rows heads keys"]]] = []

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: SearchStep, weights: Mapping[str, Float[Tensor, "_ _ _"]] | None) -> None:
        """Append a step."""
        self.steps.append(step)
        if weights is not None:
            self.weights.append(weights)

    def backtrace(self, ending: Ending, weights: bool) -> Hypothesis:
        """Backtrace a hypothesis from its ending."""
        path = [ending.row]
        for step in reversed(self.steps[1 : ending.step + 1]):
            path.append(step.parents[path[-1]])
        path.reverse()
        fed = list(zip(self.steps, path, strict=False))[1:]  # the first step was fed BOS
        return Hypothesis(
            tokens=[step.tokens[row] for step, row in fed] + [ending.token],
            score=ending.score,
            normalised=ending.normalised,
            logprobs=[step.logprobs[row] for step, row in fed] + [ending.logprob],
            finished=ending.finished,
            weights=collect_path_weights(self.weights, path, self.memory, ending.sentence) if weights else None,
        )


def make_empty_hypothesis(weights: bool) -> Hypothesis:
    """Empty hypothesis, where not one token is allowed."""
    return Hypothesis([], 0.0, 0.0, [], False, {} if weights else None)
