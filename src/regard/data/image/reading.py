"""Read PNG, JPEG and WebP: files that anybody may have made, and that may be damaged or worse.

What a file is, its first bytes say, never its name; no other format is tried. The size in its header is checked before
anything is decoded, so that a small file cannot fill the memory. A file that ends early is refused rather than filled up
with grey. A picture lies as its EXIF says; of an animation the first frame counts; what is transparent lies on white.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.image.kinds import HEAD, Bytes, Kind, kind
from regard.data.lines import DataError, unreadable
from regard.data.record import Record

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

CAP = 40_000_000
"""The most pixels of a picture."""

TAIL = 4096
"""Among how many of its last bytes the end of a picture is looked for first."""

SHOWN = 10
"""The most missing pictures that are listed."""

ORIENTATION = 0x0112


def read(
    path: Path | str, where: str | None = None, *, channels: int = 3, cap: int = CAP
) -> Float[Tensor, "channels height width"]:
    """A picture from 0 to 1, in colour (3 channels) or grey (1). `where` is the line that names it, for errors."""
    return decode(_content(path, where, cap), f"{_place(where)}{path}", channels=channels, cap=cap)


def decode(
    content: bytes, name: str = "the picture", *, channels: int = 3, cap: int = CAP
) -> Float[Tensor, "channels height width"]:
    """The same from the bytes of a file; `name` is what an error calls it."""
    if channels not in (1, 3):
        raise ValueError(f"a picture is read with 1 channel or 3, got {channels}")
    found, image = _opened(BytesIO(content), name, cap)
    try:
        image.load()
        turned = _turned(image)
    except Exception as error:  # as where it is opened
        raise DataError(_damaged(name, found, error)) from error
    if not found.whole(content[:HEAD], len(content), content):
        raise DataError(_damaged(name, found, "its end is missing"))
    return _tensor(turned, channels)


def size(path: Path | str, where: str | None = None, *, cap: int = CAP) -> tuple[int, int]:
    """Height and width of a picture as it will lie, by its header alone: what a PNG says after its pixels comes too late.

    Nothing is decoded, and yet a file that ends early is refused here, where its line can be listed with others.
    """
    name = f"{_place(where)}{path}"
    with _file(path, where) as file:
        found, image = _opened(file, name, cap)
        (width, height), turned = image.size, _orientation(image, early=True) >= 5
        if not _ended(found, file, cap):
            raise DataError(_damaged(name, found, "its end is missing"))
        return (width, height) if turned else (height, width)


def place(record: Record) -> Path:
    """Where the picture of a record lies: a path in a table counts from the table's folder."""
    return Path(record.where.rpartition(":")[0]).parent / record.source


def missing(records: Iterable[Record]) -> list[Record]:
    """Those of the records whose picture is not there."""
    return [record for record in records if not os.path.isfile(place(record))]  # False, too, where a name is too long


def present(records: Iterable[Record]) -> None:
    """Raise where pictures are missing, and list the first of them with their lines."""
    records = list(records)
    if absent := missing(records):
        listed = ", ".join(f"{record.where} {record.source}" for record in absent[:SHOWN])
        more = f" and {len(absent) - SHOWN:,} more" * (len(absent) > SHOWN)
        raise DataError(
            f"{len(absent):,} of {len(records):,} pictures are missing: {listed}{more}; "
            "paths count from the folder of the table that names them"
        )


def _content(path: Path | str, where: str | None, cap: int) -> bytes:
    """All of a file, as long as it could be a picture of at most `cap` pixels."""
    most = _most(cap)
    with _file(path, where) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DataError(f"{_place(where)}{path} is longer than {most:,} bytes, which no picture of {cap:,} pixels needs")
    return content


def _most(cap: int) -> int:
    """The most bytes of a picture of at most `cap` pixels: 8 for each, and some for notes."""
    return 8 * cap + (1 << 24)


@contextmanager
def _file(path: Path | str, where: str | None) -> Iterator[BufferedReader]:
    try:
        with open(path, "rb") as file:
            yield file
    except DataError:
        raise
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        raise DataError(_place(where) + unreadable(str(path), error)) from error


def _opened(file: Bytes, name: str, cap: int) -> tuple[Kind, "ImageFile"]:
    """The kind of a picture and its header, with nothing decoded."""
    head = file.read(HEAD)
    file.seek(0)
    if not head:
        raise DataError(f"{name} is empty; a picture is needed")
    found = kind(head)
    if found is None:
        raise DataError(f"{name} is no PNG, JPEG or WebP picture: it begins with {head[:8]!r}; convert it to one of these")
    _check(found.early_size(head), name, cap)
    try:
        image = found.opener()(file)
    except Exception as error:  # what a damaged file makes a decoder raise is of many kinds
        raise DataError(_damaged(name, found, error)) from error
    _check(image.size, name, cap)
    return found, image


def _ended(found: Kind, file: BufferedReader, cap: int) -> bool:
    """Whether a file has its end, which is looked for in its last bytes and, if somebody wrote on behind it, in all."""
    head, length = _at(file, 0, HEAD), file.seek(0, os.SEEK_END)
    tail = _at(file, max(0, length - TAIL), TAIL)
    longer = TAIL < length <= _most(cap)
    return found.whole(head, length, tail) or (longer and found.whole(head, length, _at(file, 0, length)))


def _at(file: BufferedReader, start: int, count: int) -> bytes:
    file.seek(start)
    return file.read(count)


def _check(size: tuple[int, int] | None, name: str, cap: int) -> None:
    if size is not None and size[0] * size[1] > cap:
        width, height = size
        raise DataError(
            f"{name} has {width:,} x {height:,} = {width * height:,} pixels, and at most {cap:,} are read; make it smaller"
        )


def _damaged(name: str, found: Kind, reason: object) -> str:
    text = str(reason) or type(reason).__name__
    return f"{name} is a {found.name} picture that cannot be decoded: {text}; it may be cut off or damaged: copy it anew"


def _place(where: str | None) -> str:
    return f"{where}: " if where else ""


def _orientation(image: "ImageFile", early: bool = False) -> int:
    """How a camera was held, 1 to 8; 1 where nothing readable says so. Early: unless that needs the whole picture."""
    if early and image.format == "PNG" and "exif" not in image.info:
        return 1
    try:
        found: Any = image.getexif().get(ORIENTATION, 1)
    except Exception:  # notes that nobody can read turn nothing
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _turned(image: "ImageFile") -> "Image":
    from PIL.Image import Transpose

    ways = (
        None, Transpose.FLIP_LEFT_RIGHT, Transpose.ROTATE_180, Transpose.FLIP_TOP_BOTTOM,
        Transpose.TRANSPOSE, Transpose.ROTATE_270, Transpose.TRANSVERSE, Transpose.ROTATE_90,
    )  # fmt: skip
    way = ways[_orientation(image) - 1]
    return image if way is None else image.transpose(way)


def _tensor(image: "Image", channels: int) -> Float[Tensor, "channels height width"]:
    """Any mode as numbers from 0 to 1: 16 bits keep their precision, everything else has 8."""
    if image.mode.startswith("I"):
        levels = np.asarray(image).astype(np.float32)
        levels[levels == image.info.get("transparency")] = 65535
        grey = torch.from_numpy(levels / 65535).clamp(0, 1)
        return grey.expand(channels, -1, -1).contiguous()
    image = _opaque(image).convert("L" if channels == 1 else "RGB")
    bytes_ = torch.from_numpy(np.array(image))
    planes = bytes_[None] if channels == 1 else bytes_.permute(2, 0, 1)
    return planes.contiguous().float() / 255


def _opaque(image: "Image") -> "Image":
    """The picture on white, where some of it can be seen through."""
    from PIL import Image

    if image.mode not in ("LA", "PA", "RGBA") and "transparency" not in image.info:
        return image
    seen = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
