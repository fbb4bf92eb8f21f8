"""Pictures with things on them: how a picture is read, and label <-> number."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.codec import SETTINGS, Corpus, OverLong, Report, refuse_unknown_labels
from regard.data.image.preprocess import ImageCodec, checked, usual
from regard.data.image.reading import present, size
from regard.data.image.types import ImageExample
from regard.data.records import input_record, locate
from regard.data.table import DataError
from regard.tasks.detect.config import DetectData
from regard.tasks.detect.data import Annotated, Box, located
from regard.tasks.detect.synthetic import Drawn

FORMAT = 1
KIND = "pictures with things on them"
KINDS: dict[str, type] = {"labels": list, "form": str}
"""What is saved beside how pictures are read, and as what."""
FORMS = ("xyxy", "xywh", "cxcywh")


@dataclass(frozen=True)
class ObjectCodec(ImageCodec):
    """How pictures are read, what may be on them, and what the numbers of a box are in a table."""

    kind: ClassVar[str] = KIND
    settings: ClassVar[tuple[str, ...]] = ("height", "width", "channels")
    """The settings of data that make it, and that a run which starts with another cannot change."""

    labels: tuple[str, ...]
    form: str = "xyxy"

    @classmethod
    def fit(cls, given: Sequence[Annotated], data: DetectData, stride: int) -> "ObjectCodec":
        """All labels that are there, in alphabetical order."""
        found = {label for each in given for label in each.labels or ()}
        if not found:
            raise DataError(f"to find things takes pictures with some on them, got {len(given):,} pictures with none")
        return cls(tuple(sorted(found)), data.box_format, **usual(data, stride))

    def adapt(self, data: DetectData) -> "ObjectCodec":
        """Codec of the same labels, for boxes in the format of this config."""
        return ObjectCodec(**{**self.saved(), "labels": self.labels, "form": data.box_format})

    def encode(self, given: Annotated) -> ImageExample:
        """One picture."""
        example: ImageExample = self.encode_all([given]).examples[0]
        return example

    def encode_all(
        self, given: Iterable[Annotated], over_long: OverLong | None = None, drawn: Sequence[Drawn] | None = None
    ) -> Corpus:
        """Examples of records, whose images are files, unless these functions render them; none is ever too long."""
        given = list(given)
        if drawn is None:
            present(each.record for each in given)
        boxes = located(given, self.form, None if drawn is None else [(each.size, each.size) for each in drawn])
        pictures: Sequence[Path | Drawn] = [locate(each.record) for each in given] if drawn is None else drawn
        numbers = self._known(given)
        examples = [
            ImageExample(picture, record=each.record, labels=labels, boxes=box)
            for picture, each, labels, box in zip(pictures, given, numbers, boxes, strict=True)
        ]
        return Corpus(examples, Report(len(given), len(examples), 0, 0, 0, 0.0))

    def _known(self, given: Sequence[Annotated]) -> list[list[int] | None]:
        """The numbers of the labels."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        strange = [f"{each.record.where} {one!r}" for each in given for one in each.labels or () if one not in numbers]
        refuse_unknown_labels(strange, "labels", self.labels)
        return [None if each.labels is None else [numbers[one] for one in each.labels] for each in given]

    def extent(self, example: ImageExample) -> tuple[int, int]:
        """Height and width of a picture as it is, before it is made smaller."""
        if isinstance(example.picture, (str, Path)):
            return size(example.picture)
        picture = example.picture if isinstance(example.picture, Tensor) else example.picture()
        return picture.shape[-2], picture.shape[-1]

    def pixels(self, example: ImageExample, edges: Float[Tensor, "boxes 4"]) -> list[Box]:
        """Boxes from left, top, right and bottom in shares to pixels of the picture as it is, within it."""
        height, width = self.extent(example)
        found = edges.double().cpu().clamp(0, 1) * torch.tensor([width, height, width, height])
        return [(left, top, right, low) for left, top, right, low in (found * 10).round().div(10).tolist()]

    def read(self, text: str, number: int = 1) -> Annotated:
        """Record of the path of an image."""
        return Annotated(input_record(text, number))

    def is_known(self, record: Annotated) -> bool:
        """True if there is an image; a file that is missing or is no image is an error that names it."""
        return super().is_known(record.record)

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        settings = {"format": FORMAT, "reads": KIND, **self.saved(), "labels": self.labels, "form": self.form}
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return [path]

    @classmethod
    def load(cls, directory: Traversable) -> "ObjectCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            return cls(**_checked(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of {KIND}, format {FORMAT}: {error}") from error


def _checked(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or settings.get("reads") != KIND:
        raise ValueError("it is of another format")
    values = checked(settings, KINDS)
    if not all(isinstance(label, str) and label for label in values["labels"]) or not values["labels"]:
        raise ValueError("labels need to be words")
    if values["form"] not in FORMS:
        raise ValueError(f"the form of boxes needs to be one of {', '.join(FORMS)}")
    return values
