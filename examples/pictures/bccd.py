"""BCCD: blood cells and the boxes around them, from Pascal VOC to JSONL.

    REGARD_DATA=folder/with/bccd python examples/pictures/bccd.py OUT

writes OUT/pictures/NAME.jpg, unchanged, and OUT/train.jsonl, dev.jsonl and test.jsonl, the official train, val and test of
205, 87 and 72 pictures, with on each line

    {"image": "pictures/NAME.jpg", "labels": ["WBC", "RBC", ...], "boxes": [[left, top, right, bottom], ...]}

in pixels from the top left corner. A box is cut at the edge of its picture, and left out where less than a pixel of it
remains in either direction; of 4,888 none is cut and two are left out.
"""

import json
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from folder import given, lines

from regard.data.image import reading

PARTS = {"train": "train", "dev": "val", "test": "test"}
"""What the parts are called here, and there."""

Box = list[float]


class Things(NamedTuple):
    """What is in a picture, and what was done to it."""

    labels: list[str]
    boxes: list[Box]
    dropped: int
    cut: int


def main(source: Path, out: Path) -> None:
    """Unpack the pictures and write a table for each part."""
    (out / "pictures").mkdir(parents=True, exist_ok=True)
    for name, content in unpacked(source / "JPEGImages.tar"):
        (out / "pictures" / Path(name).name).write_bytes(content)
    files = dict(unpacked(source / "Annotations_ImageSets.tar.xz"))
    for ours, theirs in PARTS.items():
        names = files[f"ImageSets/Main/{theirs}.txt"].decode().split()
        found = {f"pictures/{name}.jpg": files[f"Annotations/{name}.xml"] for name in names}
        write(out, ours, {image: kept(objects(content), *reading.size(out / image)) for image, content in found.items()})


def unpacked(path: Path) -> Iterator[tuple[str, bytes]]:
    """The files in an archive, by name."""
    with tarfile.open(path) as archive:
        for member in archive:
            if file := archive.extractfile(member):  # None: a folder
                yield member.name, file.read()


def write(out: Path, part: str, pictures: dict[str, Things]) -> None:
    """The table of a part, and what is in it."""
    rows = ({"image": image, "labels": each.labels, "boxes": each.boxes} for image, each in pictures.items())
    lines(out / f"{part}.jsonl", map(json.dumps, rows))
    labels = Counter(label for each in pictures.values() for label in each.labels)
    counted = ", ".join(f"{label} {count:,}" for label, count in labels.most_common())
    dropped, cut = (sum(each) for each in zip(*((each.dropped, each.cut) for each in pictures.values()), strict=True))
    print(f"  {counted}; dropped {dropped}, cut {cut}")


def objects(annotation: bytes) -> Iterator[tuple[str, Box]]:
    """The label and the box of each object in a VOC file."""
    for each in ElementTree.fromstring(annotation).iter("object"):
        box = [float(each.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")]
        yield each.findtext("name", ""), box


def kept(found: Iterable[tuple[str, Box]], height: int, width: int) -> Things:
    """Those boxes of which a pixel and more is in the picture, cut at its edge."""
    labels, boxes, dropped, cut = [], [], 0, 0
    for label, box in found:
        left, top, right, bottom = inside = [
            min(max(at, 0), most) for at, most in zip(box, (width, height) * 2, strict=True)
        ]
        if right - left < 1 or bottom - top < 1:
            dropped += 1
            continue
        cut += inside != box
        labels.append(label)
        boxes.append(inside)
    return Things(labels, boxes, dropped, cut)


if __name__ == "__main__":
    main(*given("bccd"))
