"""What has ended in a search: the best few of every sentence, in arrays."""

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
"""A hypothesis that grows no further: the step and row that it ended in, the last token, and what it is worth."""


class Pool:
    """Room for `size` endings of each sentence, best first: those that finished before those that were cut off.

    A normalised score of -infinity marks room that is empty. Of equal ones the earlier stands first.
    """

    def __init__(self, sentences: int, size: int):
        self.size = size
        self.endings = np.zeros((sentences, size), ENDING)
        self.endings["normalised"] = IMPOSSIBLE

    def add(self, sentences: Numbers, normalised: Floats, ended: Candidates, step: int) -> None:
        """Those that finished at a step; a normalised score of -infinity is nobody's."""
        both = np.concatenate((self.endings[sentences], records(ended, normalised, step, finished=True)), axis=1)
        order = np.argsort(-both["normalised"], axis=1, kind="stable")[:, : self.size]
        self.endings[sentences] = np.take_along_axis(both, order, 1)

    def close(self, sentences: Numbers, grown: Candidates, share: float, step: int) -> None:
        """Those that are cut off: they come behind all that finished, best first as they are given."""
        both = np.concatenate((self.endings[sentences], records(grown, grown.scores / share, step, finished=False)), axis=1)
        order = np.argsort(both["normalised"] == IMPOSSIBLE, axis=1, kind="stable")[:, : self.size]
        self.endings[sentences] = np.take_along_axis(both, order, 1)

    def any(self, sentences: Numbers) -> NDArray[np.bool_]:
        """Whether anything of each sentence has ended."""
        return self.worst(sentences, 1) > IMPOSSIBLE

    def worst(self, sentences: Numbers, count: int) -> Floats:
        """What the last of the `count` best of each sentence is worth; -infinity where there are fewer."""
        found: Floats = self.endings["normalised"][sentences, count - 1]
        return found

    def of(self, sentence: int) -> list[tuple[int, int, int, float, float, float, bool]]:
        """What has ended of a sentence, best first, each as ENDING has it."""
        mine = self.endings[sentence]
        return list(mine[mine["normalised"] > IMPOSSIBLE].tolist())


def records(ended: Candidates, normalised: Floats, step: int, finished: bool) -> Array:
    """The same as ENDING."""
    made = np.zeros(ended.tokens.shape, ENDING)
    made["step"], made["finished"], made["normalised"] = step, finished, normalised
    made["row"], made["token"], made["logprob"], made["score"] = ended.rows, ended.tokens, ended.logprobs, ended.scores
    return made
