"""Metrics of word times: error of the boundaries, and F1 of words whose both ends are within a tolerance.

Words are (text, start, end) in seconds, in the order in which they are said. They are paired by the matching blocks of their
texts, so that a word that was misheard counts as missing and as one too many. Every metric is a function of
sums over utterances: a row of numbers for each.
"""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.metrics.text import Measurement, bootstrap

TOLERANCE = 0.05
"""Seconds within which a boundary counts as right."""


class Interval(NamedTuple):
    """A word and the seconds at which it begins and ends."""

    text: str
    start: float
    end: float


def boundary_errors(words: Sequence[Interval], reference: Sequence[Interval]) -> NDArray[np.float64]:
    """Absolute error in seconds of the start and the end of each word that both have, as (words, 2)."""
    pairs = pair_words(words, reference)
    errors = [(abs(words[i].start - reference[j].start), abs(words[i].end - reference[j].end)) for i, j in pairs]
    return np.array(errors, np.float64).reshape(-1, 2)


def pair_words(words: Sequence[Interval], reference: Sequence[Interval]) -> list[tuple[int, int]]:
    """Indices of the words that both have, in order: those of the matching blocks of the texts."""
    texts, others = [word.text for word in words], [word.text for word in reference]
    blocks = SequenceMatcher(None, texts, others, autojunk=False).get_matching_blocks()
    return [(block.a + place, block.b + place) for block in blocks for place in range(block.size)]


def count_row(words: Sequence[Interval], reference: Sequence[Interval], tolerance: float = TOLERANCE) -> NDArray[np.float64]:
    """Sums of one utterance: error, boundaries, words right at both ends, words, reference words."""
    errors = boundary_errors(words, reference)
    right = float((errors <= tolerance + 1e-9).all(1).sum())
    return np.array([errors.sum(), errors.size, right, len(words), len(reference)], np.float64)


def mean_boundary_error(total: NDArray[np.float64]) -> float:
    """Mean error of a boundary in seconds; NaN where no word is in both."""
    return float(total[0] / total[1]) if total[1] else float("nan")


def word_f1(total: NDArray[np.float64]) -> float:
    """F1 of words whose text is right and whose both ends are within the tolerance, from 0 to 1.

    2 · right / (words + reference words)
    """
    return float(2 * total[2] / (total[3] + total[4])) if total[3] + total[4] else float("nan")


def measure_times(
    utterances: Sequence[Sequence[Interval]],
    references: Sequence[Sequence[Interval]],
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> dict[str, Measurement]:
    """Boundary error in milliseconds and F1 in per cent, with 95 % intervals by a bootstrap over utterances."""
    if not utterances or len(utterances) != len(references):
        raise ValueError(
            f"times need a reference for each of one or more utterances, got {len(references)} for {len(utterances)}"
        )
    rows = np.stack([count_row(*pair, tolerance) for pair in zip(utterances, references, strict=True)])
    milliseconds = round(1000 * tolerance)

    def measure(score: Callable[[NDArray[np.float64]], float], factor: float, signature: str) -> Measurement:
        low, high = bootstrap(rows, score, seed=seed)
        return Measurement(factor * score(rows.sum(0)), factor * low, factor * high, signature)

    return {
        "boundary_error": measure(mean_boundary_error, 1000.0, "ms, mean of starts and ends"),
        f"f1_{milliseconds}": measure(word_f1, 100.0, f"both ends within {milliseconds} ms"),
    }
