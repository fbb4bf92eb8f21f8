"""Fusion: scores of other models that a beam search adds to those of the decoder, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.logprobs import IMPOSSIBLE

Logs = Float[Tensor, "rows vocabulary"]


@runtime_checkable
class Scorer(Protocol):
    """Scores of every token after each hypothesis. The state is a tree of tensors, rows first, selected as a decoder's."""

    weight: float
    rewards: bool
    """True if a score may be above 0, so that a longer hypothesis may gain on a shorter one."""

    def start(self, sentences: Sequence[int]) -> Any:
        """Initial state: one row for each of these sentences of the batch."""

    def after(self, state: Any, tokens: Int[Tensor, " rows"]) -> Any:
        """State after one more token of each row; BOS, the first, changes nothing."""

    def score(self, state: Any) -> Logs:
        """Score of each token as the next."""


@dataclass(frozen=True)
class Fusion:
    """Log-linear combination of a decoder with other scorers.

        score(y_t) = w log p(y_t | y_<t, x) + Σ_i w_i s_i(y_t | y_<t)

    It is not renormalised: a hypothesis that the models disagree on loses against one that all of them like. The reference
    search alone has it.
    """

    scorers: tuple[Scorer, ...]
    decoder_weight: float = 1.0

    @property
    def rewards(self) -> bool:
        """True if a score may be above 0."""
        return any(scorer.rewards for scorer in self.scorers)

    def start(self, sentences: Sequence[int]) -> tuple[Any, ...]:
        """Initial states of all scorers."""
        return tuple(scorer.start(sentences) for scorer in self.scorers)

    def after(self, states: tuple[Any, ...], tokens: Int[Tensor, " rows"]) -> tuple[Any, ...]:
        """States of all scorers after one more token of each row."""
        return tuple(scorer.after(state, tokens) for scorer, state in zip(self.scorers, states, strict=True))

    def combine(self, states: tuple[Any, ...], logs: Logs) -> Logs:
        """Combined scores; what the decoder forbids stays forbidden."""
        total = self.decoder_weight * logs.masked_fill(logs == IMPOSSIBLE, 0.0)
        for scorer, state in zip(self.scorers, states, strict=True):
            total = total + scorer.weight * scorer.score(state).to(logs.dtype)
        return torch.where(logs == IMPOSSIBLE, IMPOSSIBLE, total)
