"""Axes of an attention, which name its queries and keys: tokens, frames of sound, patches of a picture, moments of a series.

Every axis has a `kind`, a length, and a label for each place. Lengths are checked here; that they match the weights is
checked where the two meet, in `trace.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Text:
    """Tokens. `spans` are the parts of `text` that they cover, (first, end) in characters; None where one covers nothing.

    `pieces` are the tokens as the model names them; what is shown is the text that a token covers. `special` are the places
    of tokens that stand for no text, such as <eos>. `lang` is a BCP 47 tag: "en", "zh-Hans".
    """

    kind: ClassVar[str] = "text"
    pieces: tuple[str, ...]
    text: str
    spans: tuple[tuple[int, int] | None, ...]
    special: tuple[int, ...] = ()
    lang: str | None = None

    @classmethod
    def of(cls, pieces: Sequence[str], *, special: Sequence[int] = (), lang: str | None = None) -> "Text":
        """Tokens that are shown as they are, one blank between them."""
        spans, at = [], 0
        for piece in pieces:
            spans.append((at, at + len(piece)))
            at += len(piece) + 1
        return cls(tuple(pieces), " ".join(pieces), tuple(spans), tuple(special), lang)

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def labels(self) -> list[str]:
        """Label of each token: the text it covers, or its own name where it covers none."""
        pairs = zip(self.pieces, self.spans, strict=True)
        return [piece if span is None or span[0] == span[1] else self.text[span[0] : span[1]] for piece, span in pairs]


@dataclass(frozen=True, eq=False)
class Audio:
    """Frames of sound, each `seconds_per_step` long. `spectrogram` is (bins, frames) of any number of frames."""

    kind: ClassVar[str] = "audio"
    length: int
    seconds_per_step: float
    spectrogram: Array | None = None
    sound: Array | None = None
    rate: int | None = None

    def __len__(self) -> int:
        return self.length

    @property
    def labels(self) -> list[str]:
        """The second at which each frame begins."""
        return [f"{place * self.seconds_per_step:.2f} s" for place in range(self.length)]


@dataclass(frozen=True, eq=False)
class Image:
    """Patches of a picture, row by row, after `prefix` places that are none (CLS). `pixels` is (height, width, 3), uint8."""

    kind: ClassVar[str] = "image"
    grid: tuple[int, int]
    size: tuple[int, int]
    pixels: Array | None = None
    prefix: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.prefix) + self.grid[0] * self.grid[1]

    @property
    def labels(self) -> list[str]:
        """Row and column of each patch, from 1."""
        rows, columns = self.grid
        return [*self.prefix, *(f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns))]


@dataclass(frozen=True, eq=False)
class Series:
    """Moments of a time series. `times` are seconds since 1970 (or plain numbers), `values` is (moments, names).

    From `split` on, values are forecasts.
    """

    kind: ClassVar[str] = "series"
    times: Array
    values: Array
    names: tuple[str, ...]
    split: int | None = None
    dates: bool = True

    def __len__(self) -> int:
        return len(self.times)

    @property
    def labels(self) -> list[str]:
        """The date of each moment, or its number where times are not dates."""
        if not self.dates:
            return [f"{time:g}" for time in self.times.tolist()]
        moments = np.asarray(self.times, dtype="float64").astype("datetime64[s]")
        return [str(moment).replace("T", " ") for moment in moments]


@dataclass(frozen=True, eq=False)
class Index:
    """Places with nothing but a number: memory slots, channels, anything else."""

    kind: ClassVar[str] = "index"
    length: int

    def __len__(self) -> int:
        return self.length

    @property
    def labels(self) -> list[str]:
        """The number of each place, from 0."""
        return [str(place) for place in range(self.length)]


Axis = Text | Audio | Image | Series | Index
