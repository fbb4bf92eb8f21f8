"""Word times: when each word begins and ends, from the attention of a decoder over frames.

    weights (steps, frames) --smooth, find_segments--> frames of each token --merge_segments--> frames of each word
                            --respect_pauses--> without silence --time_words--> seconds and confidence

Steps are tokens and frames are those of the encoder, as a recogniser has them; of a synthesiser, whose steps are frames,
the weights are transposed first. Everything here takes tensors and the seconds of a frame, and knows nothing of sound.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from regard.alignment.words import Units
from regard.metrics.reading import find_forward_path, measure_diagonality
from regard.metrics.warping import warp

Segments = NDArray[np.int64]
"""First frame and the frame after the last, of each token or word: (count, 2)."""
TimeMethod = Literal["dtw", "path"]
"""Reading of times from weights: by warping, or by the mechanism's own path."""


class TimedWord(NamedTuple):
    """A word with the seconds at which it begins and ends, and the confidence in them, from 0 to 1."""

    text: str
    start: float
    end: float
    confidence: float = 1.0


def time_words(
    weights: Float[Tensor, "steps frames"],
    units: Units,
    frame_seconds: float,
    *,
    method: TimeMethod = "dtw",
    width: int = 7,
    activity: Bool[Tensor, " frames"] | None = None,
    probabilities: Float[Tensor, " steps"] | None = None,
) -> list[TimedWord]:
    """Times of the words whose tokens the steps are, from the weights of one head or of a mean of heads.

    `method` "dtw" smooths the weights over `width` frames and warps them; "path" reads the path of a mechanism that moves
    forward by itself (monotonic, forward, mocha). `activity` is True in frames with sound: no word begins or ends in a
    pause. The confidence is the share of its tokens' attention inside the word, times the mean of their `probabilities`.
    """
    if weights.shape[0] != units.members.shape[1]:
        raise ValueError(
            f"word times need a row of weights for each token, got {weights.shape[0]} rows for "
            f"{units.members.shape[1]} tokens"
        )
    segments = find_segments(smooth(weights, width)) if method == "dtw" else follow_path(weights)
    frames = respect_pauses(merge_segments(segments, units), activity)
    shares = measure_shares(weights, units, frames)
    if probabilities is not None:
        members = units.members.to(probabilities)
        shares = shares * ((members @ probabilities) / members.sum(1).clamp_min(1)).double().cpu().numpy()
    return [
        TimedWord(text, float(first * frame_seconds), float(last * frame_seconds), float(share))
        for text, (first, last), share in zip(units.texts, frames, shares, strict=True)
        if last > first
    ]


def select_heads(weights: Float[Tensor, "heads steps frames"], count: int = 1) -> list[int]:
    """The heads that read most straight on, best first: those of the greatest diagonality."""
    shares = [measure_diagonality(head) for head in weights]
    return sorted(range(len(shares)), key=lambda head: -shares[head])[:count]


def smooth(weights: Float[Tensor, "steps frames"], width: int = 7) -> Float[Tensor, "steps frames"]:
    """Weights standardised over the tokens of each frame, after a median over `width` frames."""
    if width < 1 or width % 2 == 0:
        raise ValueError(f"a median needs an odd width, got {width}")
    padded = F.pad(weights[None].float(), (width // 2, width // 2), mode="replicate")[0]
    median = padded.unfold(-1, width, 1).median(-1).values
    if len(median) < 2:
        return median
    return (median - median.mean(0, keepdim=True)) / median.std(0, keepdim=True).clamp_min(1e-6)


def find_segments(weights: Float[Tensor, "steps frames"]) -> Segments:
    """Frames of each token on the warping path through the weights; of several tokens, that of most weight."""
    path = warp(-weights)
    on_path = np.full(tuple(weights.shape), -np.inf)
    on_path[path.rows, path.columns] = weights.detach().double().cpu().numpy()[path.rows, path.columns]
    owner = on_path.argmax(0)
    owners = [np.flatnonzero(owner == step) for step in range(weights.shape[0])]
    first = np.array([path.columns[path.rows == step].min() for step in range(weights.shape[0])])
    return np.array([(own[0], own[-1] + 1) if len(own) else (at, at) for own, at in zip(owners, first, strict=True)])


def follow_path(weights: Float[Tensor, "steps frames"]) -> Segments:
    """Frames of each token by the frame that it attends to most, never before that of an earlier token.

    A mechanism that moves forward writes a token when it has heard it: its frames are those after the token before, up to
    the one that it stopped at.
    """
    stops = np.maximum.accumulate(weights.argmax(1).cpu().numpy()) + 1
    return np.stack((np.concatenate(([0], stops[:-1])), stops), 1)


def time_spoken_words(
    weights: Float[Tensor, "steps keys"],
    units: Units,
    step_seconds: float,
    *,
    activity: Bool[Tensor, " steps"] | None = None,
) -> list[TimedWord]:
    """Times of the words of a synthesised text: steps are frames, keys its tokens, and the path is the best monotonic one.

    A word that the path jumps over was not spoken and has no time. The confidence is the share of the attention of its
    steps that is on the word.
    """
    path = find_forward_path(weights)
    own = [np.flatnonzero(path == key) for key in range(weights.shape[1])]
    place = np.maximum.accumulate([part[-1] + 1 if len(part) else 0 for part in own])
    segments = np.array([(part[0], part[-1] + 1) if len(part) else (at, at) for part, at in zip(own, place, strict=True)])
    words = respect_pauses(merge_segments(segments, units), activity)
    on_word = (weights @ units.members.to(weights).mT).double().cpu().numpy()  # steps units
    totals = weights.sum(1).double().cpu().numpy()
    return [
        TimedWord(
            text,
            float(first * step_seconds),
            float(last * step_seconds),
            float(np.clip(on_word[first:last, unit].sum() / max(1e-12, totals[first:last].sum()), 0, 1)),
        )
        for unit, (text, (first, last)) in enumerate(zip(units.texts, words, strict=True))
        if last > first
    ]


def merge_segments(segments: Segments, units: Units) -> Segments:
    """Frames of each word, from the first of its tokens to the last; a word without any is empty, where it would stand."""
    merged = []
    for row in units.members.cpu().numpy():
        own = segments[row]
        spoken = own[own[:, 1] > own[:, 0]]
        place = int(own[0, 0]) if len(own) else 0
        merged.append((spoken[:, 0].min(), spoken[:, 1].max()) if len(spoken) else (place, place))
    return np.array(merged, np.int64).reshape(-1, 2)


def respect_pauses(words: Segments, activity: Bool[Tensor, " frames"] | None) -> Segments:
    """Words without the silence at their beginning and end; a word of silence alone stays."""
    if activity is None:
        return words
    active = activity.cpu().numpy()
    trimmed = words.copy()
    for place, (first, last) in enumerate(words):
        sounding = np.flatnonzero(active[first:last])
        if len(sounding):
            trimmed[place] = first + sounding[0], first + sounding[-1] + 1
    return trimmed


def spread_gaps(words: Segments, activity: Bool[Tensor, " frames"] | None, frames: int, reach: int) -> Segments:
    """Words extended into the gaps between them, as a CTC path leaves them, whose tokens are spikes.

    A gap with a pause is divided at its longest run of silence, any other in its middle; no word grows by more than
    `reach` frames at either end.
    """
    active = np.ones(frames, bool) if activity is None else activity.cpu().numpy()
    spread, count = words.copy(), len(words)
    for place in range(count + 1):
        start = int(words[place - 1, 1]) if place else 0
        end = int(words[place, 0]) if place < count else frames
        if end <= start:
            continue
        left, right = _divide_gap(active[start:end], place == 0, place == count)
        if place:
            spread[place - 1, 1] = min(start + left, words[place - 1, 1] + reach)
        if place < count:
            spread[place, 0] = max(start + right, words[place, 0] - reach)
    return spread


def _divide_gap(active: NDArray[np.bool_], is_first: bool, is_last: bool) -> tuple[int, int]:
    """Times in a gap at which the word before it ends, and the word after it begins."""
    size = len(active)
    silent = np.flatnonzero(~active)
    if not len(silent):
        return (size // 2, size // 2) if not is_first and not is_last else (size, 0)
    runs = np.split(silent, np.flatnonzero(np.diff(silent) > 1) + 1)
    longest = runs[0] if is_last else runs[-1] if is_first else max(runs, key=len)
    return int(longest[0]), int(longest[-1]) + 1


def measure_shares(weights: Float[Tensor, "steps frames"], units: Units, words: Segments) -> NDArray[np.float64]:
    """Share of the attention of each word's tokens that is inside the word."""
    members = units.members.to(weights)
    by_word = (members @ weights).double().cpu().numpy()
    totals = np.maximum(by_word.sum(1), 1e-12)
    inside = [row[first:last].sum() for row, (first, last) in zip(by_word, words, strict=True)]
    return np.clip(np.array(inside, np.float64) / totals, 0.0, 1.0)


def detect_activity(energy: Float[Tensor, " frames"], *, share: float = 0.25, shortest: int = 3) -> Bool[Tensor, " frames"]:
    """True in frames with sound, by their log energy: above the noise by `share` of the way to the loudest.

    Noise is the 5th percentile and loud the 95th; runs of silence or of sound shorter than `shortest` frames join what is
    around them. Energy that hardly varies (by less than 1, a factor of e) is all sound.
    """
    low, high = torch.quantile(energy.float(), torch.tensor([0.05, 0.95], device=energy.device)).tolist()
    if high - low < 1.0:
        return torch.ones_like(energy, dtype=torch.bool)
    active = (energy > low + share * (high - low)).cpu().numpy()
    for value in (True, False):  # silence first: a stop inside of a word is no pause
        bounds = np.concatenate(([0], np.flatnonzero(np.diff(active)) + 1, [len(active)]))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if active[first] != value and last - first < shortest and first > 0 and last < len(active):
                active[first:last] = value
    return torch.from_numpy(active).to(energy.device)


def words_from_segments(
    texts: Sequence[str], segments: Segments, frame_seconds: float, confidence: Sequence[float]
) -> list[TimedWord]:
    """Words with times, from their frames."""
    rows = zip(texts, segments.tolist(), confidence, strict=True)
    return [
        TimedWord(text, first * frame_seconds, last * frame_seconds, float(share)) for text, (first, last), share in rows
    ]
