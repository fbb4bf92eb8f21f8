"""Transcript with the times of its words, and the joining of transcripts of overlapping excerpts."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from regard.alignment.stretches import Stretches
from regard.alignment.time_formats import TimeFormat, format_times
from regard.alignment.times import TimedWord
from regard.alignment.words import Units
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.offsets import spans

WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\s\u3400-\u9fff\uf900-\ufaff]+")
"""A word: what stands between spaces, or one Chinese character."""


class Transcript(NamedTuple):
    """Words with their times, the length of the recording, and what of it was never read or read twice."""

    words: tuple[TimedWord, ...]
    seconds: float
    stretches: Stretches = Stretches((), ())

    def shift(self, seconds: float) -> "Transcript":
        """The transcript of an excerpt that begins so late."""
        words = (word._replace(start=word.start + seconds, end=word.end + seconds) for word in self.words)
        parts = (
            tuple(part._replace(start=part.start + seconds, end=part.end + seconds) for part in side)
            for side in self.stretches
        )
        return Transcript(tuple(words), self.seconds, Stretches(*parts))

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the transcript in JSON."""
        words = [
            {"word": word.text, "start": round(word.start, 3), "end": round(word.end, 3), "confidence": round(word[3], 4)}
            for word in self.words
        ]
        return {"words": words, "seconds": round(self.seconds, 3), **self._describe_stretches()}

    def _describe_stretches(self) -> dict[str, Any]:
        named = {"holes": self.stretches.holes, "loops": self.stretches.loops}
        return {
            name: [{"start": round(part.start, 3), "end": round(part.end, 3)} for part in parts]
            for name, parts in named.items()
        }

    def format(self, kind: TimeFormat) -> str:
        """Words with their times as text."""
        fields = self._describe_stretches() if kind == "json" else {}
        return format_times(self.words, kind, self.seconds, **fields).rstrip("\n")

    def table(self) -> str:
        """Start, end, confidence and text of each word, a line each."""
        return "\n".join(f"{word.start:8.2f} {word.end:8.2f}  {word.confidence:4.2f}  {word.text}" for word in self.words)

    def warning(self, name: str) -> str | None:
        """Warning of stretches that were never read, or read twice; None without any."""
        parts = [
            f"{what} {', '.join(f'{part.start:.2f} to {part.end:.2f} s' for part in listed)}"
            for what, listed in (("never read", self.stretches.holes), ("read twice", self.stretches.loops))
            if listed
        ]
        return f"{name}: {'; '.join(parts)}; listen to what the transcript has there" if parts else None


def find_words(tokenizer: Tokenizer, tokens: Sequence[int], text: str) -> Units:
    """Words of a text that these tokens spell; EOS is in none."""
    covered = spans(tokenizer, list(tokens), text)
    words = list(WORD.finditer(text))
    members = [
        [span is not None and max(word.start(), span[0]) < min(word.end(), span[1]) for span in covered] for word in words
    ]
    mask = torch.tensor(members, dtype=torch.bool).view(len(words), len(covered))
    return Units(tuple(word.group() for word in words), mask)


def pool_activity(active: Bool[Tensor, " frames"], stride: int) -> Bool[Tensor, " positions"]:
    """True at positions of the encoder's output with sound in any of their frames."""
    padded = F.pad(active, (0, -len(active) % stride), value=False)
    return padded.view(-1, stride).any(1)


def refine_words(
    words: Sequence[TimedWord], active: Bool[Tensor, " frames"], frame_seconds: float, reach: float
) -> list[TimedWord]:
    """Words whose ends are moved to the longest silence between each two of them, if it is within `reach` seconds.

    Vectors of an encoder are several frames apart, and a short pause is seen in the frames alone.
    """
    edges = F.pad(~active, (1, 1), value=True).int().diff()
    runs = [(first, last) for first, last in _list_silences(edges, len(active), frame_seconds) if last > first]
    if not words:
        return []
    ends, starts = [word.end for word in words], [word.start for word in words]
    middles = [-1.0, *((word.start + word.end) / 2 for word in words), float("inf")]
    for place in range(len(words) + 1):
        left = ends[place - 1] if place else starts[0]
        right = starts[place] if place < len(words) else ends[-1]
        near = [
            (first, last)
            for first, last in runs
            if last >= left - reach and first <= right + reach and middles[place] < last and first < middles[place + 1]
        ]
        if not near:
            continue
        first, last = max(near, key=lambda run: min(run[1], right + reach) - max(run[0], left - reach))
        if place:
            ends[place - 1] = max(first, middles[place])
        if place < len(words):
            starts[place] = min(last, middles[place + 1])
    pairs = zip(words, starts, ends, strict=True)
    return [word._replace(start=start, end=end) if start < end else word for word, start, end in pairs]


def _list_silences(edges: Int[Tensor, " changes"], frames: int, frame_seconds: float) -> list[tuple[float, float]]:
    """Seconds of each run of silence; the time before the recording and after it is silent too."""
    begins, ends = (edges == 1).nonzero()[:, 0].tolist(), (edges == -1).nonzero()[:, 0].tolist()
    begins, ends = [0, *begins], [*ends, frames]
    return [(first * frame_seconds, last * frame_seconds) for first, last in zip(begins, ends, strict=True)]


def join_transcripts(parts: Sequence[Transcript], shared: Sequence[tuple[float, float]], seconds: float) -> Transcript:
    """Join transcripts of overlapping excerpts; `shared` are the seconds that each two neighbours have both read.

    The cut lies at the point of a shared stretch that is outside of all words of both, nearest to its middle.
    """
    cuts = [choose_cut(*pair, *both) for pair, both in zip(pairwise(parts), shared, strict=True)]
    bounds = [0.0, *cuts, seconds + 1.0]
    words, holes, loops = list[TimedWord](), list[Any](), list[Any]()
    for part, first, last in zip(parts, bounds[:-1], bounds[1:], strict=True):
        words += [word for word in part.words if first <= (word.start + word.end) / 2 < last]
        holes += [hole for hole in part.stretches.holes if first <= (hole.start + hole.end) / 2 < last]
        loops += [loop for loop in part.stretches.loops if first <= (loop.start + loop.end) / 2 < last]
    return Transcript(tuple(words), seconds, Stretches(tuple(holes), tuple(loops)))


def choose_cut(left: Transcript, right: Transcript, first: float, last: float) -> float:
    """Point of a stretch in none of the words of both sides if there is one, and else in the fewest."""
    middle, words = (first + last) / 2, [*left.words, *right.words]
    points = torch.linspace(first, last, 101, dtype=torch.float64).tolist()

    def cost(point: float) -> tuple[int, float]:
        return sum(word.start < point < word.end for word in words), abs(point - middle)

    return min(points, key=cost)
