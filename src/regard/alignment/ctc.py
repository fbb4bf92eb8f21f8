"""CTC alignment: the most probable frames of a known text under the log-probabilities of a CTC output."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.alignment.times import Segments, TimedWord, merge_segments, respect_pauses, spread_gaps, words_from_segments
from regard.alignment.words import Units

REACH = 0.2
"""Seconds by which a word extends at most beyond the spikes of its first and last token."""


class CtcPath(NamedTuple):
    """Frames of each token on the best path, and the mean probability of the token in them."""

    segments: Segments
    probabilities: NDArray[np.float64]
    log_probability: float
    """Of the whole path."""


def align_ctc(log_probs: Float[Tensor, "frames classes"], tokens: Sequence[int], blank: int = 0) -> CtcPath:
    """The best CTC path of a known text: Viterbi over its tokens with blanks between, before and after them.

        D(t, s) = log p(t, label_s) + max(D(t-1, s), D(t-1, s-1), D(t-1, s-2) unless s is a blank or repeats label_{s-2})

    Graves et al. 2006, https://doi.org/10.1145/1143844.1143891, with the maximum in place of the sum.
    Cost: time O(frames tokens), in one operation of NumPy for each frame.
    """
    frames, classes = log_probs.shape
    numbers = np.array(tokens, np.int64)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= classes or (numbers == blank).any()):
        raise ValueError(
            f"a text needs tokens from 0 to {classes - 1} without the blank, {blank}, got {sorted(set(tokens))}"
        )
    needed = len(numbers) + int((numbers[1:] == numbers[:-1]).sum())
    if frames < needed or not frames:
        raise ValueError(
            f"a CTC path of {len(numbers)} tokens needs {max(1, needed)} frames (a blank stands between equal ones), "
            f"got {frames}; the text is too long for the sound"
        )
    labels = np.full(2 * len(numbers) + 1, blank)
    labels[1::2] = numbers
    table = log_probs.detach().double().cpu().numpy()[:, labels]  # frames states
    path, total = _find_best_path(table, labels, blank)
    places = [np.flatnonzero(path == 2 * token + 1) for token in range(len(numbers))]
    segments = np.array([(own[0], own[-1] + 1) for own in places], np.int64).reshape(-1, 2)
    means = np.array([np.exp(table[own, 2 * token + 1]).mean() for token, own in enumerate(places)], np.float64)
    return CtcPath(segments, means, total)


def _find_best_path(table: NDArray[np.float64], labels: NDArray[np.int64], blank: int) -> tuple[NDArray[np.int64], float]:
    frames, states = table.shape
    may_jump = np.zeros(states, bool)
    may_jump[2:] = (labels[2:] != blank) & (labels[2:] != labels[:-2])
    best = np.full(states, -np.inf)
    best[:2] = table[0, :2]
    steps = np.zeros((frames, states), np.int8)
    for frame in range(1, frames):
        options = np.full((3, states), -np.inf)
        options[0] = best
        options[1, 1:] = best[:-1]
        options[2, 2:] = best[:-2]
        options[2, ~may_jump] = -np.inf
        steps[frame] = options.argmax(0)
        best = table[frame] + options.max(0)
    state = states - 1 if states == 1 or best[-1] >= best[-2] else states - 2
    total, path = float(best[state]), np.empty(frames, np.int64)
    for frame in range(frames - 1, -1, -1):
        path[frame] = state
        state -= int(steps[frame, state])  # a step is of 8 bits, and there are more states than 127
    return path, total


def time_words_by_ctc(
    log_probs: Float[Tensor, "frames classes"],
    tokens: Sequence[int],
    units: Units,
    frame_seconds: float,
    *,
    blank: int = 0,
    activity: Bool[Tensor, " frames"] | None = None,
    reach: float = REACH,
) -> list[TimedWord]:
    """Times of the words of a known text by CTC, both ends; the confidence is the mean probability of a word's tokens.

    A CTC output spikes somewhere inside of each token: words extend into the blanks around them by at most `reach` seconds,
    up to a pause, or to the middle where there is none.
    """
    if len(tokens) != units.members.shape[1]:
        raise ValueError(f"units are over {units.members.shape[1]} tokens, got {len(tokens)} to align")
    path = align_ctc(log_probs, tokens, blank)
    words = merge_segments(path.segments, units)
    words = spread_gaps(words, activity, log_probs.shape[0], round(reach / frame_seconds))
    members = units.members.cpu().numpy().astype(np.float64)
    confidence = members @ path.probabilities / np.maximum(members.sum(1), 1)
    return words_from_segments(units.texts, respect_pauses(words, activity), frame_seconds, confidence.tolist())
