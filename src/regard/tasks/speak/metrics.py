"""Metrics of synthesised speech: mel-cepstral distortion, L1, and how the attention read the text."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.alignment.words import Units
from regard.data.audio.features import build_cosines
from regard.metrics.reading import find_misreadings, measure_diagonality
from regard.metrics.text import Measurement, bootstrap
from regard.metrics.warping import warp_distance

COEFFICIENTS = 13
"""Cepstral coefficients that are compared, after the first, which is the loudness."""


def mel_cepstral_distortion(frames: Float[Tensor, "frames bins"], reference: Float[Tensor, "others bins"]) -> float:
    """Mel-cepstral distortion of log mel spectrograms in dB, along the cheapest warping path of the two.

        10 / ln 10 · mean over the path of √(2 Σ_{k=1}^{13} (c_k - c'_k)²)

    Kubichek 1993, https://doi.org/10.1109/PACRIM.1993.407206. c is the orthonormal cosine transform of the logarithm of
    the amplitude, half of that of the power; figures of other filters and transforms are not comparable.
    """
    cosines = build_cosines(frames.shape[1], min(COEFFICIENTS + 1, frames.shape[1])).double()[:, 1:]
    first, second = (0.5 * part.double().cpu() @ cosines for part in (frames, reference))
    path = warp_distance(first, second)
    return float(10 / np.log(10) * np.sqrt(2) * path.cost / len(path.rows))


class ReadingFigures(NamedTuple):
    """Figures of the attention of one text."""

    diagonality: float
    skipped: tuple[str, ...]
    repeated: tuple[str, ...]
    words: int


def measure_reading(weights: Float[Tensor, "heads steps keys"], units: Units) -> ReadingFigures:
    """Figures of the attention of one text, by the head that reads most straight on."""
    shares = [measure_diagonality(head) for head in weights]
    head = weights[int(np.argmax(shares))]
    skipped, repeated = find_misreadings(head, units.members)
    texts = units.texts
    return ReadingFigures(
        max(shares), tuple(texts[unit] for unit in skipped), tuple(texts[unit] for unit in repeated), len(texts)
    )


def best_head(weights: Float[Tensor, "heads steps keys"]) -> Float[Tensor, "steps keys"]:
    """The head that reads most straight on."""
    return weights[int(np.argmax([measure_diagonality(head) for head in weights]))]


def mean_of(values: Sequence[float], signature: str, seed: int = 0) -> Measurement:
    """Mean over texts, with its 95 % interval."""
    rows = np.array([[value, 1.0] for value in values], np.float64)
    return _measure(rows, lambda total: float(total[0] / max(total[1], 1)), signature, seed)


def share_of_words(counts: Sequence[int], words: Sequence[int], signature: str, seed: int = 0) -> Measurement:
    """Share of words in per cent, with its 95 % interval by a bootstrap over texts."""
    rows = np.array(list(zip(counts, words, strict=True)), np.float64)
    return _measure(rows, lambda total: float(100 * total[0] / max(total[1], 1)), signature, seed)


def _measure(
    rows: NDArray[np.float64], score: Callable[[NDArray[np.float64]], float], signature: str, seed: int
) -> Measurement:
    low, high = bootstrap(rows, score, seed=seed)
    return Measurement(score(rows.sum(0)), low, high, signature)
