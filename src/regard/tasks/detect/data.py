"""What is where on pictures, as a table has it: JSONL, on each line a picture, a list of labels and one of boxes.

    {"image": "pictures/7.jpg", "labels": ["cat", "dog"], "boxes": [[12, 30, 200, 180], [220, 10, 300, 90]]}

A picture with nothing on it has two empty lists. All that is wrong with a table is told at once, line by line.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.image.cache import readable
from regard.data.image.reading import place, size
from regard.data.lines import bounds
from regard.data.records import Record
from regard.data.table import AND, DataError, rows, text, value
from regard.tasks.detect.config import DetectData

Box = tuple[float, float, float, float]
ENDINGS = (".jsonl", ".json", ".ndjson")
LISTED = 5
"""How many mistakes are listed."""
SLACK = 1e-4
"""How far a box may reach over the edge of its picture, as a share: what rounding makes of one that ends there."""


class Annotated(NamedTuple):
    """A picture, what is on it, and the box of each thing as the table has it; None where nobody has said."""

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
                f"things and their boxes come as JSONL, one object with {data.image}, {data.labels} and {data.boxes} on "
                f"each line, in a file called NAME.jsonl, got {part!r}"
            )
    found = [_line(row, where, data) for part in parts for row, where in rows(part, bounds=bounds(data))]
    mend(each for each in found if isinstance(each, str))
    return [each for each in found if isinstance(each, Annotated)]


def _line(row: Any, where: str, data: DetectData) -> Annotated | str:
    """One line, or what is wrong with it."""
    picture = text(row, data.image, where) or ""
    labels, boxes = value(row, data.labels, where), value(row, data.boxes, where)
    if not picture.strip():
        return f"{where} names no picture"
    if not isinstance(labels, list) or not all(isinstance(each, str) and each.strip() for each in labels):
        return f"{where} needs a list of words in {data.labels!r}, got {_short(labels)}"
    if not isinstance(boxes, list) or len(boxes) != len(labels):
        many = f"{len(boxes)} boxes" if isinstance(boxes, list) else _short(boxes)
        return f"{where} needs a box for each of its {len(labels)} labels, got {many}"
    for number, each in enumerate(boxes, 1):
        if not isinstance(each, list) or len(each) != 4 or not all(map(_number, each)):
            return f"{where} box {number} ({labels[number - 1]}) needs four numbers, got {_short(each)}"
    four = tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in boxes)
    return Annotated(Record(picture, None, where), tuple(each.strip() for each in labels), four)


def located(
    given: Sequence[Annotated], form: str, sizes: Sequence[tuple[int, int]] | None = None
) -> list[Float[Tensor, "boxes 4"] | None]:
    """Boxes as centre x, centre y, width and height in shares of their picture, once each is seen to lie in it.

    `sizes` are the height and width of the pictures; without them the pictures are files, and say so.
    """
    sizes = readable([_measured(each.record) for each in given]) if sizes is None else sizes
    edges = [
        None if each.boxes is None else [EDGES[form](box, *side) for box in each.boxes]
        for each, side in zip(given, sizes, strict=True)
    ]
    mend(wrong for each, box, side in zip(given, edges, sizes, strict=True) for wrong in _outside(each, box or (), *side))
    return [None if box is None else _centred(torch.tensor(box).view(-1, 4).clamp(0, 1)) for box in edges]


def _measured(record: Record) -> tuple[int, int] | DataError:
    """Height and width of a picture in a file, or why it cannot be read."""
    try:
        return size(place(record), record.where)
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
"""The left, top, right and bottom of a box in shares of its picture, by the form that it is given in."""


def _outside(given: Annotated, edges: Iterable[Box], height: int, width: int) -> Iterator[str]:
    """What is wrong with the boxes of a picture."""
    told = zip(given.labels or (), given.boxes or (), edges, strict=True)
    for number, (label, box, (left, top, right, bottom)) in enumerate(told, 1):
        what = f"{given.record.where} box {number} ({label}: {', '.join(f'{each:.6g}' for each in box)})"
        if not (right > left and bottom > top):
            yield f"{what} has no size"
        elif min(left, top) < -SLACK or max(right, bottom) > 1 + SLACK:
            yield f"{what} reaches outside its picture of {width} x {height}"


def mend(wrong: Iterable[str]) -> None:
    """Raise where there are mistakes, and list the first of them."""
    if found := list(wrong):
        more = f"; and {len(found) - LISTED:,} more" * (len(found) > LISTED)
        raise DataError(
            f"{len(found):,} mistakes in what is where: {'; '.join(found[:LISTED])}{more}. Correct them or leave them out; "
            "data.box_format says what the four numbers of a box are"
        )


def _number(each: Any) -> bool:
    return type(each) in (int, float) and math.isfinite(each)


def _short(each: Any) -> str:
    said = repr(each)
    return said if len(said) <= 60 else f"{said[:57]}..."
