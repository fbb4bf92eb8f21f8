"""Codec of labelled pictures and clips: preprocessing, and label <-> number."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from regard.config import quoted
from regard.data.axis import Text
from regard.data.batch import Padded, pad_present
from regard.data.codec import SETTINGS, Corpus, OverLong, Report, refuse_unknown_labels
from regard.data.image import clips
from regard.data.image.clips import Folder
from regard.data.image.preprocess import ImageCodec, checked, usual
from regard.data.image.reading import present
from regard.data.image.types import ImageExample
from regard.data.modality import WritableFile
from regard.data.records import Record, locate
from regard.data.table import DataError
from regard.tasks.classify.config import ClassifyData

FORMAT = 1
KIND = "labelled pictures"
KINDS: dict[str, type] = {"labels": list, "several": bool, "clips": bool, "frames": int}
"""Settings saved beside the preprocessing of pictures, with their types."""
BETWEEN = ","
"""Between the labels of a picture that has several."""


@dataclass(frozen=True)
class LabelCodec(ImageCodec):
    """Preprocessing of pictures, and their labels: one each or, with `several`, any number.

    With `clips` they are folders of at most `frames` frames.
    """

    settings: ClassVar[tuple[str, ...]] = ("multi_label", "clips", "height", "width", "channels")
    feedback: ClassVar[None] = None
    """The settings of data that the codec depends on."""

    labels: tuple[str, ...]
    several: bool = False
    clips: bool = False
    frames: int = 64

    @classmethod
    def fit(cls, records: Sequence[Record], data: ClassifyData, stride: int) -> "LabelCodec":
        """All labels of the records, in alphabetical order."""
        several = bool(data.multi_label)
        labels = {label for record in records for label in split(record.target or "", several)}
        if len(labels) < 2 - several:
            need = "1 label" if several else "2 different labels"
            raise DataError(f"a classifier needs {need} or more, got {', '.join(labels) or 'none'}")
        return cls(tuple(sorted(labels)), several, data.clips, data.max_frames, **usual(data, stride))

    def adapt(self, data: ClassifyData) -> "LabelCodec":
        """The codec unchanged: it depends on no other settings."""
        return self

    def encode(self, record: Record) -> ImageExample:
        """One record."""
        example: ImageExample = self.encode_all([record]).examples[0]
        return example

    def encode_all(
        self,
        records: Iterable[Record],
        over_long: OverLong | None = None,
        renderers: Sequence[Callable[[], Tensor]] | None = None,
    ) -> Corpus:
        """Encode records whose pictures are existing files or, with `renderers`, are rendered on access; none is cut."""
        records = list(records)
        pictures = self._files(records) if renderers is None else renderers
        self._check_labels(records)
        examples = [
            ImageExample(picture, record=record, labels=self.encode_target(record))
            for picture, record in zip(pictures, records, strict=True)
        ]
        return Corpus(examples, Report(len(records), len(examples), 0, 0, 0, 0.0))

    def _files(self, records: Sequence[Record]) -> Sequence[Path | Folder]:
        """The file or the folder of frames of each record."""
        if not self.clips:
            present(records)
            return [locate(record) for record in records]
        clips.present(records)
        return [self._folder(record) for record in records]

    def _folder(self, record: Record) -> Folder:
        return Folder(locate(record), record.where, (self.height, self.width), self.channels, self.frames)

    def encode_target(self, record: Record) -> list[int] | None:
        """Numbers of the labels of a record; None where it is unlabelled."""
        if record.target is None and not self.several:
            return None
        return [self.numbers[label] for label in split(record.target or "", self.several)]

    def collate_target(self, examples: Sequence[ImageExample]) -> Padded | None:
        """Labels of examples as rows; None where they have none."""
        return pad_present([example.labels for example in examples])

    def decode(self, output: Sequence[int]) -> list[str]:
        """Labels of their numbers."""
        return [self.labels[number] for number in output]

    def write(self, prediction: Sequence[str], file: WritableFile) -> None:
        """Write labels as one line."""
        file.write(f"{', '.join(prediction)}\n")

    def target_pieces(self, output: Sequence[int]) -> list[str]:
        """Labels of their numbers."""
        return self.decode(output)

    def target_axis(self, output: Sequence[int]) -> Text:
        """Axis of an attention's queries: the labels."""
        return Text.of(self.decode(output))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each label."""
        return {label: number for number, label in enumerate(self.labels)}

    def is_known(self, record: Record) -> bool:
        """True if there is a picture or a clip; one that is missing or unreadable is an error that names it."""
        return self._folder(record).has_frames() if self.clips else super().is_known(record)

    def _check_labels(self, records: Sequence[Record]) -> None:
        unknown = [
            f"{record.where} {quoted(label)}"
            for record in records
            for label in split(record.target or "", self.several)
            if record.target is not None and label not in self.numbers
        ]
        refuse_unknown_labels(unknown, "labels", self.labels)

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        own = {name: getattr(self, name) for name in KINDS}
        settings = {"format": FORMAT, "reads": KIND, **self.saved(), **own}
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return [path]

    @classmethod
    def load(cls, directory: Traversable) -> "LabelCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            return cls(**_checked(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of {KIND}, format {FORMAT}: {error}") from error


def split(text: str, several: bool) -> list[str]:
    """The labels in a cell, each once."""
    parts = text.split(BETWEEN) if several else [text]
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _checked(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or settings.get("reads") != KIND:
        raise ValueError("it is of another format")
    values = checked(settings, KINDS)
    if not all(isinstance(label, str) and label for label in values["labels"]) or not values["labels"]:
        raise ValueError("labels need to be words")
    if values["frames"] < 1:
        raise ValueError("a clip needs 1 frame or more")
    return values
