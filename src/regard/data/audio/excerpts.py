"""Excerpts of long recordings: overlapping stretches of frames, each of which a model reads by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.audio.batch import AudioExample, Synthesis


@dataclass(frozen=True)
class Excerpt:
    """Frames of a recording, from one on."""

    sound: Path | Synthesis
    first: int
    frames: int
    whole: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Features of the whole recording, once they are computed: all of its excerpts share them."""


class Stretch(NamedTuple):
    """First frame and number of frames."""

    first: int
    frames: int


def split_frames(frames: int, most: int, overlap: int) -> list[Stretch]:
    """Stretches of at most `most` frames, of equal lengths, of which neighbours share `overlap` frames or a few more."""
    if not 0 <= overlap < most:
        raise ValueError(f"excerpts need to be longer than what two of them share, got {most} and {overlap} frames")
    if frames <= most:
        return [Stretch(0, frames)]
    count = -(-(frames - overlap) // (most - overlap))
    starts = [round(number * (frames - most) / (count - 1)) for number in range(count)]
    return [Stretch(first, most) for first in starts]


def take_excerpts(example: AudioExample, stretches: Sequence[Stretch]) -> list[AudioExample]:
    """Examples of stretches of a recording, without targets."""
    assert not isinstance(example.sound, Excerpt), "an excerpt is of a whole recording"
    whole: dict[str, Any] = {}
    excerpts = [Excerpt(example.sound, *stretch, whole) for stretch in stretches]
    return [AudioExample(excerpt, excerpt.frames, None, example.record) for excerpt in excerpts]
