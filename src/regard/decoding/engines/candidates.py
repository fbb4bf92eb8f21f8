"""Candidates of a beam search step, in NumPy arrays."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.special_tokens import EOS
from regard.decoding.logprobs import IMPOSSIBLE

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Array = NDArray[Any]


class Candidates(NamedTuple):
    """Candidates, (sentences, candidates) each, best first; `rows` are the hypotheses that they extend."""

    scores: Array
    logprobs: Array
    tokens: Array
    rows: Array

    def taken(self, order: Numbers) -> "Candidates":
        """Reorder the candidates of each sentence."""
        return Candidates(*(np.take_along_axis(each, order, 1) for each in self))

    def of(self, sentences: Numbers | NDArray[np.bool_]) -> "Candidates":
        """Candidates of these sentences."""
        return Candidates(*(each[sentences] for each in self))

    def first(self, count: int) -> "Candidates":
        """Best `count` of each sentence."""
        return Candidates(*(each[:, :count] for each in self))

    def growing(self, beams: int) -> "Candidates":
        """Best `beams` that have not finished."""
        ended = self.tokens == EOS
        grown = self._replace(scores=np.where(ended, IMPOSSIBLE, self.scores))
        return grown.taken(ended.argsort(1, kind="stable")[:, :beams])


def extend(scores: Floats, values: Array, tokens: Array, beams: int) -> Candidates:
    """Best extensions: enough for `beams` to go on if one of each row has finished; of equals the leftmost."""
    sentences, width = scores.shape
    each = values.shape[1]
    totals = (scores.reshape(-1, 1) + values).reshape(sentences, -1)
    places = np.argsort(-totals, axis=1, kind="stable")[:, : beams + width]
    rows = places // each + np.arange(0, sentences * width, width)[:, None]
    chosen = places + np.arange(0, totals.size, totals.shape[1])[:, None]
    return Candidates(totals.ravel()[chosen], values.ravel()[chosen], tokens.ravel()[chosen], rows)
