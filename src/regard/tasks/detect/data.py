"""Tables of annotated objects: JSONL with a picture, a list of labels and a list of boxes on each line.

    {"image": "pictures/7.jpg", "labels": ["cat", "dog"], "boxes": [[12, 30, 200, 180], [220, 10, 300, 90]]}

A picture without objects has two empty lists. All errors of a table are reported at once, line by line.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.image.cache import readable
from regard.data.image.reading import size
from regard.data.lines import bounds
from regard.data.records import Record, locate
from regard.data.table import AND, DataError, rows, text, value
from regard.tasks.detect.config import DetectData

Box = tuple[float, float, float, float]
ENDINGS = (".jsonl", ".json", ".ndjson")
LISTED = 5
"""Errors that a message lists."""
SLACK = 1e-4
"""Tolerance of a box beyond the edge of its picture, as a fraction: the rounding error of one that ends there."""


class Annotated(NamedTuple):
    """A picture with its labels, and the box of each object in the format of the table; None where unannotated."""

    record: Record
    labels: tuple[str, ...] | None = None
    boxes: tuple[Box, ...] | None = None

    @property
    def where(self) -> str:
        """Its place in its file."""
        return self.record.where


def read(path: str, data: DetectData) -> list[Annotated]:
    """The lines of a table, or of several joined by +."""
    parts = path.split(AND) if AND in path and not os.path.exists(path) else [path]
    for part in parts:
        if part != "-" and not part.removesuffix(".gz").endswith(ENDINGS):
            raise DataError(
                f"annotated objects need to be JSONL, one object with {data.image}, {data.labels} and {data.boxes} on "
                f"each line, in a file called NAME.jsonl, got {part!r}"
            )
    parsed = [_parse_line(row, where, data) for part in parts for row, where in rows(part, bounds=bounds(data))]
    raise_mistakes(entry for entry in parsed if isinstance(entry, str))
    return [entry for entry in parsed if isinstance(entry, Annotated)]


def _parse_line(row: Any, where: str, data: DetectData) -> Annotated | str:
    """The annotation of one line, or its error."""
    picture = text(row, data.image, where) or ""
    labels, boxes = value(row, data.labels, where), value(row, data.boxes, where)
    if not picture.strip():
        return f"{where} names no picture"
    if not isinstance(labels, list) or not all(isinstance(label, str) and label.strip() for label in labels):
        return f"{where} needs a list of words in {data.labels!r}, got {_short(labels)}"
    if not isinstance(boxes, list) or len(boxes) != len(labels):
        many = f"{len(boxes)} boxes" if isinstance(boxes, list) else _short(boxes)
        return f"{where} needs a box for each of its {len(labels)} labels, got {many}"
    for number, box in enumerate(boxes, 1):
        if not isinstance(box, list) or len(box) != 4 or not all(map(_number, box)):
            return f"{where} box {number} ({labels[number - 1]}) needs four numbers, got {_short(box)}"
    four = tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in boxes)
    return Annotated(Record(picture, None, where), tuple(label.strip() for label in labels), four)


def normalise_boxes(
    annotations: Sequence[Annotated], form: str, sizes: Sequence[tuple[int, int]] | None = None
) -> list[Float[Tensor, "boxes 4"] | None]:
    """Boxes as centre x, centre y, width and height as fractions of their picture, each checked to lie in it.

    `sizes` are the height and width of the pictures; without them they are read from the files.
    """
    sizes = readable([_picture_size(annotation.record) for annotation in annotations]) if sizes is None else sizes
    edges = [
        None if annotation.boxes is None else [EDGES[form](box, *side) for box in annotation.boxes]
        for annotation, side in zip(annotations, sizes, strict=True)
    ]
    raise_mistakes(
        wrong
        for annotation, box, side in zip(annotations, edges, sizes, strict=True)
        for wrong in _outside(annotation, box or (), *side)
    )
    return [None if box is None else _centred(torch.tensor(box).view(-1, 4).clamp(0, 1)) for box in edges]


def _picture_size(record: Record) -> tuple[int, int] | DataError:
    """Height and width of a picture in a file, or why it cannot be read."""
    try:
        return size(locate(record), record.where)
    except DataError as error:
        return error


def _centred(edges: Float[Tensor, "boxes 4"]) -> Float[Tensor, "boxes 4"]:
    near, far = edges[:, :2], edges[:, 2:]
    return torch.cat(((near + far) / 2, far - near), dim=1)


def _corners(box: Box, height: int, width: int) -> Box:
    left, top, right, bottom = box
    return left / width, top / height, right / width, bottom / height


def _sides(box: Box, height: int, width: int) -> Box:
    left, top, wide, high = box
    return _corners((left, top, left + wide, top + high), height, width)


def _shares(box: Box, height: int, width: int) -> Box:
    x, y, wide, high = box
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


EDGES: dict[str, Callable[[Box, int, int], Box]] = {"xyxy": _corners, "xywh": _sides, "cxcywh": _shares}
"""Conversion of a box to left, top, right and bottom as fractions of its picture, by box format."""


def _outside(annotations: Annotated, edges: Iterable[Box], height: int, width: int) -> Iterator[str]:
    """Errors in the boxes of a picture."""
    objects = zip(annotations.labels or (), annotations.boxes or (), edges, strict=True)
    for number, (label, box, (left, top, right, bottom)) in enumerate(objects, 1):
        what = f"{annotations.record.where} box {number} ({label}: {', '.join(f'{number:.6g}' for number in box)})"
        if not (right > left and bottom > top):
            yield f"{what} has no size"
        elif min(left, top) < -SLACK or max(right, bottom) > 1 + SLACK:
            yield f"{what} reaches outside its picture of {width} x {height}"


def raise_mistakes(wrong: Iterable[str]) -> None:
    """Raise where there are errors, listing the first of them."""
    if errors := list(wrong):
        more = f"; and {len(errors) - LISTED:,} more" * (len(errors) > LISTED)
        raise DataError(
            f"{len(errors):,} errors in the annotations: {'; '.join(errors[:LISTED])}{more}. Correct them or "
            "leave them out; data.box_format says what the four numbers of a box are"
        )


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."
