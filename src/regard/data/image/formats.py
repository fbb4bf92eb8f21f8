"""The formats that are read, each known by its first bytes, opened by its own plugin of Pillow and by nothing else.

`Image.open` would try what else is installed, and warn of large pictures or not by a setting of the whole process.
"""

from collections.abc import Callable
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

Bytes = BufferedReader | BytesIO

HEAD = 30
"""Number of leading bytes that identify a format and, of a WebP, its size."""


class Kind(NamedTuple):
    """A format."""

    name: str
    opener: Callable[[], Callable[[Bytes], "ImageFile"]]
    """Imports what reads the header of a file."""
    whole: Callable[[bytes, int, bytes], bool]
    """Check of a file's end, by its first bytes, its length and its last bytes."""
    early_size: Callable[[bytes], tuple[int, int] | None]
    """Width and height, where opening the file would already make room for its pixels."""


def kind(head: bytes) -> Kind | None:
    """Format of a file by its first bytes; None if it is not supported."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return Kind("PNG", _png, _ends(b"IEND\xae\x42\x60\x82"), _unknown)
    if head.startswith(b"\xff\xd8\xff"):
        return Kind("JPEG", _jpeg, _ends(b"\xff\xd9"), _unknown)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Kind("WebP", _webp, _whole_webp, _webp_size)
    return None


def _png() -> "Callable[[Bytes], ImageFile]":
    from PIL.PngImagePlugin import PngImageFile

    return PngImageFile


def _jpeg() -> "Callable[[Bytes], ImageFile]":
    from PIL.JpegImagePlugin import JpegImageFile

    return JpegImageFile


def _webp() -> "Callable[[Bytes], ImageFile]":
    from PIL.WebPImagePlugin import WebPImageFile

    return WebPImageFile


def _unknown(head: bytes) -> None:
    return None


def _ends(mark: bytes) -> Callable[[bytes, int, bytes], bool]:
    """Build a check for the end mark of a format; other programs may have appended bytes behind it."""
    return lambda head, length, tail: mark in tail


def _whole_webp(head: bytes, length: int, tail: bytes) -> bool:
    return length >= int.from_bytes(head[4:8], "little") + 8


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """Width and height in the header of each of the three forms (RFC 9649, https://www.rfc-editor.org/rfc/rfc9649)."""
    form = head[12:16]
    if len(head) < HEAD:
        return None
    if form == b"VP8X":  # two numbers of 24 bits, less one
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8L":  # two numbers of 14 bits, less one, after a byte of signature
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":  # two numbers of 14 bits, after three bytes of start code
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    return None
