"""The ways on at a step of a search, in arrays."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.text.vocabulary import EOS
from regard.decoding.logprobs import IMPOSSIBLE

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Array = NDArray[Any]


class Candidates(NamedTuple):
    """Hypotheses one token longer, (sentences, candidates) each, best first; `rows` are those that they grew from."""

    scores: Array
    logprobs: Array
    tokens: Array
    rows: Array

    def taken(self, order: Numbers) -> "Candidates":
        """These candidates of each sentence, in this order."""
        return Candidates(*(np.take_along_axis(each, order, 1) for each in self))

    def of(self, sentences: Numbers | NDArray[np.bool_]) -> "Candidates":
        """Those of these sentences."""
        return Candidates(*(each[sentences] for each in self))

    def first(self, count: int) -> "Candidates":
        """The best few of each sentence."""
        return Candidates(*(each[:, :count] for each in self))

    def growing(self, beams: int) -> "Candidates":
        """The best `beams` that have not ended."""
        ended = self.tokens == EOS
        grown = self._replace(scores=np.where(ended, IMPOSSIBLE, self.scores))
        return grown.taken(ended.argsort(1, kind="stable")[:, :beams])


def extend(scores: Floats, values: Array, tokens: Array, beams: int) -> Candidates:
    """The best ways on: enough for `beams` hypotheses to go on if from each row one has ended; of equals the leftmost."""
    sentences, width = scores.shape
    each = values.shape[1]
    totals = (scores.reshape(-1, 1) + values).reshape(sentences, -1)
    places = np.argsort(-totals, axis=1, kind="stable")[:, : beams + width]
    rows = places // each + np.arange(0, sentences * width, width)[:, None]
    chosen = places + np.arange(0, totals.size, totals.shape[1])[:, None]
    return Candidates(totals.ravel()[chosen], values.ravel()[chosen], tokens.ravel()[chosen], rows)
