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
from jaxtyping import Float, Shaped
from torch import Tensor

from regard.config import shortened
from regard.data.image.formats import HEAD, Bytes, Kind, kind
from regard.data.lines import unreadable
from regard.data.records import Record, locate
from regard.errors import DataError
from regard.inputs import open_regular

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

CAP = 40_000_000
"""The most pixels of a picture."""

BELIEVED = 12_000_000
"""Pixels that a header of any file may claim: decoding so many takes less than 256 MB."""

DENSEST = 64
"""Pixels for each byte of a file that claims more: a photograph has ten or fewer, a bomb has thousands."""

BAND = 1 << 20
"""Pixels that are converted at a time: other modes than that of the result then take no second picture."""

TAIL = 4096
"""Among how many of its last bytes the end of a picture is looked for first."""

SHOWN = 10
"""The most missing pictures that are listed."""

ORIENTATION = 0x0112


def read(
    path: Path | str, where: str | None = None, *, channels: int = 3, cap: int = CAP
) -> Float[Tensor, "channels height width"]:
    """A picture from 0 to 1, in colour (3 channels) or grey (1). `where` is the line that names it, for errors."""
    return _floats(read_pixels(path, where, channels=channels, cap=cap)).contiguous()


def read_pixels(
    path: Path | str, where: str | None = None, *, channels: int = 3, cap: int = CAP
) -> Shaped[Tensor, "channels height width"]:
    """The pixels of a picture: bytes from 0 to 255, or floats from 0 to 1 where they have more than 8 bits."""
    return decode_pixels(_content(path, where, cap), f"{_place(where)}{path}", channels=channels, cap=cap)


def decode(
    content: bytes, name: str = "the picture", *, channels: int = 3, cap: int = CAP
) -> Float[Tensor, "channels height width"]:
    """Decode the bytes of a file, as `read` does; errors call it `name`."""
    return _floats(decode_pixels(content, name, channels=channels, cap=cap)).contiguous()


def decode_pixels(
    content: bytes, name: str = "the picture", *, channels: int = 3, cap: int = CAP
) -> Shaped[Tensor, "channels height width"]:
    """Decode the pixels from the bytes of a file, as `read_pixels` does.

    The memory it takes is that of the decoder and one picture of bytes: 8 bits stay 8 bits until a picture is resized.
    """
    if channels not in (1, 3):
        raise ValueError(f"a picture is read with 1 channel or 3, got {channels}")
    file_kind, image = _opened(BytesIO(content), name, cap)
    try:
        image.load()
        orientation = _orientation(image)
        pixels = _turned(_planes(image, channels), orientation)
    except Exception as error:  # as where it is opened
        raise DataError(_damaged(name, file_kind, _fault(error, "its pixels cannot be decoded"))) from error
    if not file_kind.whole(content[:HEAD], len(content), content):
        raise DataError(_damaged(name, file_kind, "its end is missing"))
    return pixels.expand(channels, -1, -1)


def size(path: Path | str, where: str | None = None, *, cap: int = CAP) -> tuple[int, int]:
    """Height and width of a picture as it will lie, by its header alone: what a PNG says after its pixels comes too late.

    Nothing is decoded, and yet a file that ends early is refused here, where its line can be listed with others.
    """
    name = f"{_place(where)}{path}"
    with _file(path, where) as file:
        file_kind, image = _opened(file, name, cap)
        (width, height), turned = image.size, _orientation(image, early=True) >= 5
        if not _ended(file_kind, file, cap):
            raise DataError(_damaged(name, file_kind, "its end is missing"))
        return (width, height) if turned else (height, width)


def missing(records: Iterable[Record]) -> list[Record]:
    """Records whose picture does not exist."""
    return [record for record in records if not os.path.isfile(locate(record))]  # False, too, where a name is too long


def present(records: Iterable[Record]) -> None:
    """Raise where pictures are missing, and list the first of them with their lines."""
    records = list(records)
    if absent := missing(records):
        listed = ", ".join(f"{record.where} {shortened(record.source, 300)}" for record in absent[:SHOWN])
        more = f" and {len(absent) - SHOWN:,} more" * (len(absent) > SHOWN)
        raise DataError(
            f"{len(absent):,} of {len(records):,} pictures are missing: {listed}{more}; "
            "paths count from the folder of the table that names them"
        )


def _content(path: Path | str, where: str | None, cap: int) -> bytes:
    """Content of a file, unless it is longer than a picture of `cap` pixels can be."""
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
        with open_regular(path) as file:
            yield file
    except DataError:
        raise
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        raise DataError(_place(where) + unreadable(str(path), error)) from error


def _opened(file: Bytes, name: str, cap: int) -> tuple[Kind, "ImageFile"]:
    """The kind of a picture and its header, with nothing decoded."""
    head, length = file.read(HEAD), file.seek(0, os.SEEK_END)
    file.seek(0)
    if not head:
        raise DataError(f"{name} is empty; a picture is needed")
    file_kind = kind(head)
    if file_kind is None:
        raise DataError(f"{name} is no PNG, JPEG or WebP picture, as its first bytes show; convert it to one of these")
    _check(file_kind.early_size(head), name, cap, length)
    try:
        image = file_kind.opener()(file)
    except Exception as error:  # what a damaged file makes a decoder raise is of many kinds
        raise DataError(_damaged(name, file_kind, _fault(error, "its header is damaged"))) from error
    _check(image.size, name, cap, length)
    return file_kind, image


def _ended(file_kind: Kind, file: BufferedReader, cap: int) -> bool:
    """Return True if a file has its end mark: in its last bytes or, if bytes were appended, anywhere."""
    head, length = _at(file, 0, HEAD), file.seek(0, os.SEEK_END)
    tail = _at(file, max(0, length - TAIL), TAIL)
    longer = TAIL < length <= _most(cap)
    return file_kind.whole(head, length, tail) or (longer and file_kind.whole(head, length, _at(file, 0, length)))


def _at(file: BufferedReader, start: int, count: int) -> bytes:
    file.seek(start)
    return file.read(count)


def _check(size: tuple[int, int] | None, name: str, cap: int, length: int) -> None:
    """Refuse a size before anything is decoded: one above the cap, or one that so few bytes cannot hold."""
    if size is None:
        return
    width, height = size
    pixels = width * height
    claim = f"{width:,} x {height:,} = {pixels:,} pixels"
    if pixels > cap:
        raise DataError(f"{name} has {claim}, and at most {cap:,} are read; make it smaller")
    if pixels > BELIEVED and pixels > DENSEST * length:
        raise DataError(
            f"{name} claims {claim} in {length:,} bytes: of a picture of more than {BELIEVED:,} each byte may stand for "
            f"{DENSEST} pixels; make it smaller, or write it anew"
        )


def _fault(error: Exception, fault: str) -> str:
    """Fault of a file in our words: the decoder's message may quote bytes of the file or of the memory behind it."""
    return "there is not enough memory for it" if isinstance(error, MemoryError) else fault


def _damaged(name: str, file_kind: Kind, fault: str) -> str:
    return (
        f"{name} is a {file_kind.name} picture that cannot be decoded: {fault}; it may be cut off or damaged: copy it anew"
    )


def _place(where: str | None) -> str:
    return f"{where}: " if where else ""


def _orientation(image: "ImageFile", early: bool = False) -> int:
    """Exif orientation, 1 to 8; 1 where none is readable. Early: unless that needs the whole picture."""
    if early and image.format == "PNG" and "exif" not in image.info:
        return 1
    try:
        orientation: Any = image.getexif().get(ORIENTATION, 1)
    except Exception:  # notes that nobody can read turn nothing
        return 1
    return orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1


def _turned(pixels: Shaped[Tensor, "planes high wide"], orientation: int) -> Shaped[Tensor, "planes height width"]:
    """The pixels as they lie once a camera's orientation, 1 to 8, is undone (Exif 2.32, tag 0x0112)."""
    if orientation >= 5:
        pixels = pixels.mT
    axes = {2: (-1,), 3: (-1, -2), 4: (-2,), 6: (-1,), 7: (-1, -2), 8: (-2,)}.get(orientation)
    return (pixels if axes is None else pixels.flip(axes)).contiguous()


def _planes(image: "Image", channels: int) -> Shaped[Tensor, "planes height width"]:
    """The pixels of any mode, converted band after band: bytes or, of 16 bits, a single plane of floats from 0 to 1."""
    width, height = image.size
    deep = image.mode.startswith("I")
    pixels = np.empty((1 if deep else channels, height, width), np.float32 if deep else np.uint8)
    rows = max(1, BAND // width)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        band = image.crop((0, top, width, bottom))
        if deep:
            levels = np.asarray(band).astype(np.float32)
            levels[levels == image.info.get("transparency")] = 65535
            pixels[0, top:bottom] = np.clip(levels / 65535, 0, 1)
        else:
            colours = np.asarray(_opaque(band).convert("L" if channels == 1 else "RGB"))
            pixels[:, top:bottom] = colours[None] if channels == 1 else colours.transpose(2, 0, 1)
    return torch.from_numpy(pixels)


def _floats(pixels: Shaped[Tensor, "channels height width"]) -> Float[Tensor, "channels height width"]:
    return pixels if pixels.is_floating_point() else pixels.float().div_(255)


def _opaque(image: "Image") -> "Image":
    """The picture on white, where some of it can be seen through."""
    from PIL import Image

    if image.mode not in ("LA", "PA", "RGBA") and "transparency" not in image.info:
        return image
    rgba = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
