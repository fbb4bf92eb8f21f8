"""Codec of pictures with annotated objects: preprocessing, label <-> number, and box formats."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.axis import Text
from regard.data.codec import SETTINGS, Corpus, OverLong, Report, refuse_unknown_labels
from regard.data.image.preprocess import ImageCodec, checked, usual
from regard.data.image.reading import present, size
from regard.data.image.types import ImageExample
from regard.data.modality import WritableFile
from regard.data.records import input_record, locate
from regard.data.table import DataError
from regard.metrics.boxes import to_corners
from regard.models.detections import Detections, ObjectBatch, Objects, collate_objects
from regard.tasks.detect.config import DetectData
from regard.tasks.detect.data import Annotated, Box, normalise_boxes
from regard.tasks.detect.synthetic import SyntheticScene

FORMAT = 1
KIND = "pictures with things on them"
KINDS: dict[str, type] = {"labels": list, "form": str}
"""Settings saved beside the preprocessing of pictures, with their types."""
FORMS = ("xyxy", "xywh", "cxcywh")


@dataclass(frozen=True)
class ObjectCodec(ImageCodec):
    """Preprocessing of pictures, the labels of objects, and the box format of tables."""

    kind: ClassVar[str] = KIND
    settings: ClassVar[tuple[str, ...]] = ("height", "width", "channels")
    feedback: ClassVar[None] = None
    """The settings of data that the codec depends on; training initialised from another run cannot change them."""

    labels: tuple[str, ...]
    form: str = "xyxy"

    @classmethod
    def fit(cls, annotations: Sequence[Annotated], data: DetectData, stride: int) -> "ObjectCodec":
        """All labels of the annotations, in alphabetical order."""
        labels = {label for annotation in annotations for label in annotation.labels or ()}
        if not labels:
            raise DataError(f"detection needs pictures with objects, got {len(annotations):,} pictures with none")
        return cls(tuple(sorted(labels)), data.box_format, **usual(data, stride))

    def adapt(self, data: DetectData) -> "ObjectCodec":
        """The codec for the box format of other data."""
        return ObjectCodec(**{**self.saved(), "labels": self.labels, "form": data.box_format})

    def encode(self, annotations: Annotated) -> ImageExample:
        """Encode one picture."""
        example: ImageExample = self.encode_all([annotations]).examples[0]
        return example

    def encode_all(
        self,
        annotations: Iterable[Annotated],
        over_long: OverLong | None = None,
        renderers: Sequence[SyntheticScene] | None = None,
    ) -> Corpus:
        """Encode pictures, which are existing files or, with `renderers`, are rendered on access; none is cut."""
        annotations = list(annotations)
        if renderers is None:
            present(annotation.record for annotation in annotations)
        boxes = normalise_boxes(
            annotations, self.form, None if renderers is None else [(renderer.size, renderer.size) for renderer in renderers]
        )
        pictures: Sequence[Path | SyntheticScene] = (
            [locate(annotation.record) for annotation in annotations] if renderers is None else renderers
        )
        numbers = self._label_numbers(annotations)
        examples = [
            ImageExample(picture, record=annotation.record, labels=labels, boxes=box)
            for picture, annotation, labels, box in zip(pictures, annotations, numbers, boxes, strict=True)
        ]
        return Corpus(examples, Report(len(annotations), len(examples), 0, 0, 0, 0.0))

    def _label_numbers(self, annotations: Sequence[Annotated]) -> list[list[int] | None]:
        """Numbers of the labels of each picture."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        unknown = [
            f"{annotation.record.where} {one!r}"
            for annotation in annotations
            for one in annotation.labels or ()
            if one not in numbers
        ]
        refuse_unknown_labels(unknown, "labels", self.labels)
        return [
            None if annotation.labels is None else [numbers[one] for one in annotation.labels] for annotation in annotations
        ]

    def encode_target(self, record: Annotated) -> Objects | None:
        """Labels and boxes of a picture, as fractions of it; None where it is not annotated."""
        [labels], [boxes] = self._label_numbers([record]), normalise_boxes([record], self.form)
        return None if labels is None or boxes is None else Objects(torch.tensor(labels, dtype=torch.long), boxes)

    def collate_target(self, examples: Sequence[ImageExample]) -> ObjectBatch | None:
        """Labels and boxes of examples, padded to the most objects; None where they have none."""
        objects = [
            Objects(torch.tensor(example.labels, dtype=torch.long), example.boxes)
            for example in examples
            if example.labels is not None and example.boxes is not None
        ]
        return collate_objects(objects) if objects else None

    def decode(self, output: Detections) -> list[tuple[str, Box, float]]:
        """Label, corners and probability of each detection; corners are fractions of the picture."""
        boxes: list[Box] = [(left, top, right, low) for left, top, right, low in to_corners(output.boxes).tolist()]
        names = [self.labels[label] for label in output.labels.tolist()]
        return list(zip(names, boxes, output.scores.tolist(), strict=True))

    def write(self, prediction: Sequence[tuple[str, Box, float]], file: WritableFile) -> None:
        """Write detections as one line: label, corners and probability of each."""
        parts = (f"{name} {' '.join(f'{edge:.4f}' for edge in box)} {score:.4f}" for name, box, score in prediction)
        file.write(f"{'; '.join(parts)}\n")

    def target_pieces(self, output: Detections) -> list[str]:
        """Label of each detection."""
        return [self.labels[label] for label in output.labels.tolist()]

    def target_axis(self, output: Detections) -> Text:
        """Axis of an attention's queries: the detections, with their probabilities."""
        return Text.of([f"{name} {score:.2f}" for name, _, score in self.decode(output)])

    def extent(self, example: ImageExample) -> tuple[int, int]:
        """Height and width of a picture before resizing."""
        if isinstance(example.picture, (str, Path)):
            return size(example.picture)
        picture = example.picture if isinstance(example.picture, Tensor) else example.picture()
        return picture.shape[-2], picture.shape[-1]

    def pixels(self, example: ImageExample, edges: Float[Tensor, "boxes 4"]) -> list[Box]:
        """Convert corners as fractions to pixels of the picture before resizing, clipped to it."""
        height, width = self.extent(example)
        pixels = edges.double().cpu().clamp(0, 1) * torch.tensor([width, height, width, height])
        return [(left, top, right, low) for left, top, right, low in (pixels * 10).round().div(10).tolist()]

    def read(self, text: str, number: int = 1) -> Annotated:
        """Record of the path of a picture."""
        return Annotated(input_record(text, number))

    def is_known(self, record: Annotated) -> bool:
        """True if there is a picture; a file that is missing or is none is an error that names it."""
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
