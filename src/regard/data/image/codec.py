"""Codec of images with texts: the images are sources, and the target modality is text."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from regard.config import ImageTextData
from regard.data.batch import Padded, pad_present
from regard.data.codec import SETTINGS, Corpus, OverLong, Report
from regard.data.feedback import TokenFeedback
from regard.data.image.preprocess import ImageCodec, checked, usual
from regard.data.image.reading import present
from regard.data.image.types import ImageExample
from regard.data.modality import WritableFile
from regard.data.records import Record, locate
from regard.data.special_tokens import EOS, UNK
from regard.data.table import DataError
from regard.data.text import tokenizers
from regard.data.text.codec import until_end
from regard.data.text.tokenizers import Tokenizer

if TYPE_CHECKING:
    from regard.data.axis import Text
    from regard.data.text.axis import TokenAxes

FORMAT = 1
KINDS: dict[str, type] = {"lowercase": bool, "max_target_length": int, "over_long": str}
"""Fields that are saved beside the tokens and those of images, and their types."""
Renderer = Callable[[], Tensor]


@dataclass(frozen=True)
class ImageTextCodec(ImageCodec):
    """Codec of images, and a tokenizer for the texts about them. `max_target_length` counts EOS."""

    settings: ClassVar[tuple[str, ...]] = (
        "tokenizer",
        "vocab_size",
        "min_frequency",
        "lowercase",
        "height",
        "width",
        "channels",
        "stretch",
    )
    """Settings of `data` that are fixed once it is fitted."""
    feedback: ClassVar[TokenFeedback] = TokenFeedback()

    target: Tokenizer
    lowercase: bool = False
    max_target_length: int = 256
    over_long: OverLong = "drop"

    @classmethod
    def fit(cls, records: Sequence[Record], data: ImageTextData, stride: int, whole: int = 0) -> "ImageTextCodec":
        """Train the tokenizer on the texts of the records."""
        if data.max_target_length < 2:
            raise ValueError("max_target_length needs at least 2: a token and the end")
        texts = [record.target.lower() if data.lowercase else record.target for record in records if record.target]
        if not texts or len(texts) < len(records):
            raise DataError(f"tokens are learnt from pictures with texts, got {len(records)} and {len(texts)}")
        target = tokenizers.train(data.tokenizer, texts, data.vocab_size, data.min_frequency)
        return cls(target, data.lowercase, data.max_target_length, data.over_long, **usual(data, stride, whole))

    def adapt(self, data: ImageTextData) -> "ImageTextCodec":
        """Codec of the same tokens, with the limits of this config."""
        return replace(self, max_target_length=data.max_target_length, over_long=data.over_long)

    def encode(self, record: Record) -> ImageExample:
        """Example of one record; it is never dropped, and a text that is too long is cut."""
        example: ImageExample = self.encode_all([record], "truncate").examples[0]
        return example

    def encode_all(
        self, records: Iterable[Record], over_long: OverLong | None = None, renderers: Sequence[Renderer] | None = None
    ) -> Corpus:
        """Examples of records, whose images are files, unless these functions render them."""
        records = list(records)
        if renderers is None:
            present(records)
        pictures: Sequence[Path | Renderer] = [locate(record) for record in records] if renderers is None else renderers
        targets = iter(
            self.target.encode_all([self.prepare(record.target) for record in records if record.target is not None])
        )
        drop = (over_long or self.over_long) == "drop"
        examples: list[ImageExample] = []
        cut = 0
        for record, picture in zip(records, pictures, strict=True):
            target = None if record.target is None else next(targets)
            long = target is not None and len(target) >= self.max_target_length
            if drop and long:
                continue
            cut += long
            ended = None if target is None else [*target[: self.max_target_length - 1], EOS]
            examples.append(ImageExample(picture, ended, record))
        dropped = len(records) - len(examples)
        return Corpus(examples, Report(len(records), len(examples), 0, cut, dropped, unknown(examples)))

    def encode_target(self, record: Record) -> list[int] | None:
        """Token ids of a record's text with EOS, cut where it is too long; None where it has none."""
        if record.target is None:
            return None
        return [*self.target.encode(self.prepare(record.target))[: self.max_target_length - 1], EOS]

    def collate_target(self, examples: Sequence[ImageExample]) -> Padded | None:
        """Texts of examples, padded to one tensor; None where they have none."""
        return pad_present([example.target for example in examples])

    def decode(self, numbers: Iterable[int]) -> str:
        """Text of an output, up to its first EOS."""
        return self.target.decode(until_end(numbers))

    def write(self, prediction: str, file: WritableFile) -> None:
        """Write a text as one line."""
        file.write(f"{prediction}\n")

    def target_axis(self, numbers: Sequence[int]) -> "Text":
        """Axis of an output: its tokens, and the part of the decoded text that each covers."""
        return self.target_axes.decoded(numbers)

    @cached_property
    def target_axes(self) -> "TokenAxes":
        """Axes of outputs, with the table of their tokens."""
        from regard.data.text.axis import TokenAxes

        return TokenAxes(self.target)

    def target_pieces(self, numbers: Iterable[int]) -> list[str]:
        """Text of each token of an output, up to its first EOS and with it."""
        numbers = list(numbers)
        return self.target.shown(numbers[: len(until_end(numbers)) + 1])

    def prepare(self, text: str) -> str:
        """Text that is tokenized: in lower case with `lowercase`."""
        return text.lower() if self.lowercase else text

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokenizer's own files; returns the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        settings = {"format": FORMAT, "reads": self.kind, **self.saved(), **{name: getattr(self, name) for name in KINDS}}
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return [path, *self.target.save(directory, "target")]

    @classmethod
    def load(cls, directory: Traversable) -> "ImageTextCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
            values = _checked(settings)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of pictures, format {FORMAT}: {error}") from error
        return cls(tokenizers.load(directory, "target"), **values)


def unknown(examples: Sequence[ImageExample]) -> float:
    """Share of UNK among the tokens, EOS aside."""
    sides = [example.target or [EOS] for example in examples]
    return sum(side.count(UNK) for side in sides) / max(1, sum(len(side) - 1 for side in sides))


def _checked(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or settings.get("reads") != ImageCodec.kind:
        raise ValueError("it is of another format")
    values = checked(settings, KINDS)
    if values["over_long"] not in ("truncate", "drop"):
        raise ValueError(f"over_long is {values['over_long']!r}, and needs to be truncate or drop")
    return values
