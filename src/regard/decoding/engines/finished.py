"""Finished hypotheses of a search: the best few of every sentence, in NumPy arrays."""

import numpy as np
from numpy.typing import NDArray

from regard.decoding.engines.candidates import Array, Candidates, Floats, Numbers
from regard.decoding.logprobs import IMPOSSIBLE

ENDING = np.dtype(
    [
        ("step", "i8"),
        ("row", "i8"),
        ("token", "i8"),
        ("logprob", "f8"),
        ("score", "f8"),
        ("normalised", "f8"),
        ("finished", "?"),
    ]
)
"""Record of a finished hypothesis: step and row of its last token, the token, and its scores."""


class Pool:
    """Pool of `size` endings of each sentence, best first: finished ones before those that were cut off.

    A normalised score of -infinity marks an empty place. Of equal ones the earlier stands first.
    """

    def __init__(self, sentences: int, size: int):
        self.size = size
        self.endings = np.zeros((sentences, size), ENDING)
        self.endings["normalised"] = IMPOSSIBLE

    def add(self, sentences: Numbers, normalised: Floats, ended: Candidates, step: int) -> None:
        """Add hypotheses that finished at a step; a normalised score of -infinity is unused."""
        both = np.concatenate((self.endings[sentences], make_records(ended, normalised, step, finished=True)), axis=1)
        order = np.argsort(-both["normalised"], axis=1, kind="stable")[:, : self.size]
        self.endings[sentences] = np.take_along_axis(both, order, 1)

    def close(self, sentences: Numbers, grown: Candidates, share: float, step: int) -> None:
        """Add hypotheses that are cut off: they come after all finished ones, in the order given."""
        both = np.concatenate(
            (self.endings[sentences], make_records(grown, grown.scores / share, step, finished=False)), axis=1
        )
        order = np.argsort(both["normalised"] == IMPOSSIBLE, axis=1, kind="stable")[:, : self.size]
        self.endings[sentences] = np.take_along_axis(both, order, 1)

    def any(self, sentences: Numbers) -> NDArray[np.bool_]:
        """Mask of the sentences with any ending."""
        return self.worst(sentences, 1) > IMPOSSIBLE

    def worst(self, sentences: Numbers, count: int) -> Floats:
        """Score of the `count`-th best ending of each sentence; -infinity where there are fewer."""
        found: Floats = self.endings["normalised"][sentences, count - 1]
        return found

    def of(self, sentence: int) -> list[tuple[int, int, int, float, float, float, bool]]:
        """Endings of a sentence, best first, each as an ENDING record."""
        mine = self.endings[sentence]
        return list(mine[mine["normalised"] > IMPOSSIBLE].tolist())


def make_records(ended: Candidates, normalised: Floats, step: int, finished: bool) -> Array:
    """Convert candidates to ENDING records."""
    made = np.zeros(ended.tokens.shape, ENDING)
    made["step"], made["finished"], made["normalised"] = step, finished, normalised
    made["row"], made["token"], made["logprob"], made["score"] = ended.rows, ended.tokens, ended.logprobs, ended.scores
    return made
