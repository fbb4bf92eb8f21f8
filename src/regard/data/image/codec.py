"""Pictures with texts: how a picture is read, and text <-> token numbers."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import UInt8
from torch import Tensor

from regard.config import PictureData
from regard.data import tokenise
from regard.data.image.augment import Change
from regard.data.image.batch import Pictures, collect
from regard.data.image.gallery import Gallery
from regard.data.image.loader import Loader
from regard.data.image.pictured import Pictured
from regard.data.image.reading import place, present, size
from regard.data.record import Record
from regard.data.table import DataError
from regard.data.text import SETTINGS, Corpus, OverLong, Report, until_end
from regard.data.tokenise import Tokeniser
from regard.data.vocabulary import EOS, UNK

FORMAT = 1
KIND = "pictures"
KINDS: dict[str, type] = {"height": int, "width": int, "channels": int, "stride": int, "mean": list, "deviation": list}
KINDS |= {"lowercase": bool, "longest_target": int, "over_long": str}
"""What is saved beside the tokens, and as what."""

MEASURED = 1000
"""From how many pictures, at most, the mean of a channel is taken."""
LEAST = 1e-3
"""The least deviation: of pictures that are all of one colour."""
Drawn = Callable[[], Tensor]


@dataclass(frozen=True)
class PictureCodec:
    """How pictures are read, and a tokeniser for what is written of them.

    A picture that is larger than `height` x `width` is made smaller. `stride` is the side of the square that one place of
    the model's map stands for. `longest_target` counts EOS.
    """

    kind: ClassVar[str] = KIND
    settings: ClassVar[tuple[str, ...]] = ("tokens", "vocabulary", "least", "lowercase", "height", "width", "channels")
    """The settings of data that make it."""

    target: Tokeniser
    height: int = 256
    width: int = 256
    channels: int = 3
    stride: int = 8
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    """Of each channel, and its deviation: what a model takes off, and divides by."""
    deviation: tuple[float, ...] = (0.5, 0.5, 0.5)
    lowercase: bool = False
    longest_target: int = 256
    over_long: OverLong = "drop"

    @classmethod
    def fit(cls, records: Sequence[Record], data: PictureData, stride: int) -> "PictureCodec":
        """Train the tokeniser on the texts of the records."""
        if data.longest_target < 2:
            raise ValueError("longest_target needs at least 2: a token and the end")
        texts = [record.target.lower() if data.lowercase else record.target for record in records if record.target]
        if not texts or len(texts) < len(records):
            raise DataError(f"tokens are learnt from pictures with texts, got {len(records)} and {len(texts)}")
        target = tokenise.train(data.tokens, texts, data.vocabulary, data.least)
        usual = (0.5,) * data.channels
        limits = data.lowercase, data.longest_target, data.over_long
        return cls(target, data.height, data.width, data.channels, stride, usual, usual, *limits)

    def standardised(self, gallery: Gallery) -> "PictureCodec":
        """The same, with the mean and the deviation of the channels of these pictures, or of many of them."""
        chosen = range(0, len(gallery), -(-len(gallery) // MEASURED))
        total, count = torch.zeros(2, self.channels, dtype=torch.float64), 0
        for number in chosen:
            pixels = gallery.picture(number).double().flatten(1)
            total += torch.stack((pixels.sum(1), pixels.square().sum(1)))
            count += pixels.shape[1]
        mean, square = total / count
        deviation = (square - mean.square()).clamp_min(LEAST**2).sqrt()
        rounded = [tuple(round(value, 4) for value in each.tolist()) for each in (mean, deviation)]
        return replace(self, mean=rounded[0], deviation=rounded[1])

    def fitted(self, data: PictureData) -> "PictureCodec":
        """The same tokens, with the limits of this config."""
        return replace(self, longest_target=data.longest_target, over_long=data.over_long)

    def encode(self, record: Record) -> Pictured:
        """One record; it is never dropped, and what is too long is cut."""
        example: Pictured = self.encode_all([record], "cut").examples[0]
        return example

    def encode_all(
        self, records: Iterable[Record], over_long: OverLong | None = None, drawn: Sequence[Drawn] | None = None
    ) -> Corpus:
        """Many records, whose pictures are files, and all of them there, unless they are `drawn`."""
        records = list(records)
        if drawn is None:
            present(records)
        pictures: Sequence[Path | Drawn] = [place(record) for record in records] if drawn is None else drawn
        targets = iter(self.target.encode_all([self.prepare(each.target) for each in records if each.target is not None]))
        drop = (over_long or self.over_long) == "drop"
        examples: list[Pictured] = []
        cut = 0
        for record, picture in zip(records, pictures, strict=True):
            target = None if record.target is None else next(targets)
            long = target is not None and len(target) >= self.longest_target
            if drop and long:
                continue
            cut += long
            ended = None if target is None else [*target[: self.longest_target - 1], EOS]
            examples.append(Pictured(picture, ended, record))
        dropped = len(records) - len(examples)
        return Corpus(examples, Report(len(records), len(examples), 0, cut, dropped, unknown(examples)))

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of an output, up to its first EOS."""
        return self.target.decode(until_end(numbers))

    def target_pieces(self, numbers: Iterable[int]) -> list[str]:
        """The text that each number of an output stands for, up to its first EOS and with it."""
        numbers = list(numbers)
        return self.target.shown(numbers[: len(until_end(numbers)) + 1])

    def prepare(self, text: str) -> str:
        """The text that is tokenised: in lower case, when the codec asks for that."""
        return text.lower() if self.lowercase else text

    def gallery(self, examples: Sequence[Pictured]) -> Gallery:
        """The pictures of examples, as a model reads them."""
        return Gallery(examples, (self.height, self.width), self.channels)

    def alone(self, example: Pictured) -> Pictures:
        """One picture, as a model reads it."""
        return collect([self.gallery([example]).picture(0)], self.stride)

    def loader(self, examples: Sequence[Pictured], budget: int) -> Loader:
        """Batches to evaluate with, of at most so many pixels."""
        return Loader(self.gallery(examples), budget, shuffle=False, multiple=self.stride)

    def training(self, gallery: Gallery, budget: int, seed: int, change: Change | None) -> Loader:
        """Batches to train with, whose pictures change at random."""
        return Loader(gallery, budget, seed, multiple=self.stride, change=change)

    def budget(self, examples: Sequence[Pictured], count: int) -> int:
        """The pixels of a batch of so many pictures as large as they may be."""
        return count * self.height * self.width

    def seen(self, example: Pictured) -> UInt8[Tensor, "channels height width"]:
        """A picture as a model reads it."""
        return self.gallery([example]).raw(0)

    def grid(self, example: Pictured) -> tuple[int, int]:
        """The rows and columns of the map of a picture."""
        [(_, height, width)] = self.gallery([example]).sizes
        return -(-height // self.stride), -(-width // self.stride)

    def pieces(self, example: Pictured) -> list[str]:
        """What each place of the map is called: row and column, from 1."""
        rows, columns = self.grid(example)
        return [f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns)]

    def knows(self, record: Record) -> bool:
        """Whether there is a picture; a file that is missing, or is none, is an error that names it."""
        size(place(record))
        return True

    reads = knows

    def short(self, records: Sequence[Record]) -> list[int]:
        """The places of all records: a picture that is too large is made smaller."""
        return list(range(len(records)))

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokeniser's own files; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        settings = {"format": FORMAT, "reads": KIND, **{name: getattr(self, name) for name in KINDS}}  # tuples become lists
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return [path, *self.target.save(directory, "target")]

    @classmethod
    def load(cls, directory: Path) -> "PictureCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
            _check(settings)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of pictures, format {FORMAT}: {error}") from error
        values: dict[str, Any] = {
            name: tuple(settings[name]) if kind is list else settings[name] for name, kind in KINDS.items()
        }
        return cls(tokenise.load(directory, "target"), **values)


def unknown(examples: Sequence[Pictured]) -> float:
    """The share of UNK among the tokens, EOS aside."""
    sides = [example.target or [EOS] for example in examples]
    return sum(side.count(UNK) for side in sides) / max(1, sum(len(side) - 1 for side in sides))


def _check(settings: Any) -> None:
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or settings.get("reads") != KIND:
        raise ValueError("it is of another format")
    if wrong := [name for name, kind in KINDS.items() if type(settings.get(name)) is not kind]:
        raise ValueError(f"{wrong[0]} is missing or of the wrong kind")
    if settings["over_long"] not in ("cut", "drop"):
        raise ValueError(f"over_long is {settings['over_long']!r}, and needs to be cut or drop")
    if min(settings[name] for name in ("height", "width", "stride")) < 1 or settings["channels"] not in (1, 3):
        raise ValueError("a picture needs a height, a width and a stride of 1 or more, and 1 channel or 3")
    standard = [*settings["mean"], *settings["deviation"]]
    if len(standard) != 2 * settings["channels"] or not all(type(each) is float and each >= 0 for each in standard):
        raise ValueError("mean and deviation need a number for each channel")
