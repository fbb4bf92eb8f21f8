"""Mutated pictures (F7): each is a picture or a DataError, in a child that may die: no signal, and no growth of 256 MB."""

import io
import mmap
import os
import random
import re
import struct
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from PIL import Image, features

from regard.data.image.reading import decode_pixels
from regard.errors import DataError

pytestmark = pytest.mark.unhooked
GROWTH = 256 << 20
BATCH = 250
FORMS = ["PNG", "JPEG", "WEBP", "GIF", "BMP"]
WORDS = re.compile(
    r"its (header is damaged|pixels cannot be decoded|end is missing)|first bytes show|is empty|claims|has .* pixels"
)
SIZES = [0, 1, 7, 255, 2999, 4000, 6300, 16383, 65535, 0x7FFFFFFF]


def saved(image: Image.Image, form: str, **settings: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **settings)
    return out.getvalue()


def whole(form: str) -> list[bytes]:
    """Pictures that can be read: modes, interlacing, notes, profiles and animations."""
    noise = np.random.default_rng(0).integers(0, 256, (11, 17, 4), np.uint8)
    colour, clear = Image.fromarray(noise[..., :3]), Image.fromarray(noise)
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "words"
    if form == "PNG":
        notes = {"exif": exif, "icc_profile": bytes(200), "transparency": (1, 2, 3)}
        others = [Image.fromarray(noise[..., 0].astype(np.uint16) * 257), colour.quantize(7), colour.convert("1"), clear]
        return [saved(colour, form, **notes), *(saved(each, form) for each in others), animated(clear, form)]
    if form == "JPEG":
        ways = [{}, {"progressive": True, "exif": exif}, {"subsampling": 0, "icc_profile": bytes(200)}]
        return [
            *(saved(colour, form, **way) for way in ways),
            saved(colour.convert("CMYK"), form),
            saved(colour.convert("L"), form),
        ]
    if form == "WEBP":
        return [saved(colour, form), saved(clear, form, lossless=True, exif=exif), animated(clear, form)]
    return [saved(colour, form)]


def animated(image: Image.Image, form: str) -> bytes:
    return saved(image, form, save_all=True, append_images=[image.rotate(180)], duration=10)


def mutated(rng: random.Random, contents: list[bytes]) -> bytes:
    """One of the pictures with one to four things done to it."""
    content = bytearray(rng.choice(contents))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = bytearray(rng.choice(WAYS)(rng, bytes(content), contents)) or bytearray(b"\0")
    return bytes(content)


def flip(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 12))):
        changed[rng.randrange(len(changed))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(changed)


def cut(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    return content[: rng.randrange(len(content))]


def blank(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    start = rng.randrange(len(content))
    size = rng.randrange(1, 65)
    return content[:start] + bytes(size) + content[start + size :]


def spliced(rng: random.Random, content: bytes, contents: list[bytes]) -> bytes:
    other = rng.choice(contents)
    return content[: rng.randrange(len(content))] + other[rng.randrange(len(other)) :]


def repeated(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    start = rng.randrange(len(content))
    end = rng.randrange(start, len(content))
    return content[:end] + content[start:end] * rng.choice((1, 2, 50)) + content[end:]


def number(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    start = rng.randrange(len(content))
    form = rng.choice(("<I", ">I", "<H", ">H"))
    value = struct.pack(form, rng.choice(SIZES) & (0xFFFF if form[1] == "H" else 0xFFFFFFFF))
    return content[:start] + value + content[start + len(value) :]


def sized(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    """Another width and height where the format has them, and all check sums right."""
    width, height = rng.choice(SIZES), rng.choice(SIZES)
    if content.startswith(b"\x89PNG"):
        return content[:16] + struct.pack(">II", width & 0x7FFFFFFF, height & 0x7FFFFFFF) + content[24:]
    frame = next((place for mark in (b"\xff\xc0", b"\xff\xc2") if (place := content.find(mark)) > 0), -1)
    if frame > 0:
        return content[: frame + 5] + struct.pack(">HH", height & 0xFFFF, width & 0xFFFF) + content[frame + 9 :]
    if content[12:16] == b"VP8X":
        return (
            content[:24]
            + (width & 0xFFFFFF).to_bytes(3, "little")
            + (height & 0xFFFFFF).to_bytes(3, "little")
            + content[30:]
        )
    if content[12:16] == b"VP8 ":
        return content[:26] + struct.pack("<HH", width & 0x3FFF, height & 0x3FFF) + content[30:]
    return content


def noted(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    """A note that unpacks to a thousand times its bytes, behind the header of a PNG."""
    if not content.startswith(b"\x89PNG"):
        return content
    packed = zlib.compress(bytes(rng.choice((1000, 5_000_000))))
    kind, text = rng.choice(((b"zTXt", b"k\0\0"), (b"iCCP", b"k\0\0"), (b"iTXt", b"k\0\1\0\0\0")))
    return content[:33] + chunk(kind, text + packed) * rng.choice((1, 3)) + content[33:]


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def summed(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    """Right check sums for the chunks of a PNG, without which nothing behind the first change is ever looked at."""
    if not content.startswith(b"\x89PNG"):
        return content
    at, parts = 8, [content[:8]]
    while at + 12 <= len(content):
        length = min(int.from_bytes(content[at : at + 4], "big"), len(content) - at - 12)
        parts.append(chunk(content[at + 4 : at + 8], content[at + 8 : at + 8 + length]))
        at += 12 + length
    return b"".join(parts)


Way = Callable[[random.Random, bytes, list[bytes]], bytes]
WAYS: list[Way] = [flip, flip, flip, cut, blank, spliced, repeated, number, sized, noted, summed]


def peak() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) << 10


def fallen(form: str, seed: int, contents: list[bytes], count: int) -> Iterator[str]:
    """What fell among so many mutated pictures, looked at in a child."""
    at = mmap.mmap(-1, 8)
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ends[0])
        with os.fdopen(ends[1], "w") as report:
            try:
                report.writelines(looked(form, seed, contents, count, at))
            except BaseException:
                report.write(traceback.format_exc())
        os._exit(0)
    os.close(ends[1])
    with os.fdopen(ends[0], errors="replace") as report:
        yield from report.read().splitlines()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        yield f"{form}, seed {seed}, case {int.from_bytes(at[:8], 'little')}: ended with {code}"


def looked(form: str, seed: int, contents: list[bytes], count: int, at: mmap.mmap) -> Iterator[str]:
    warnings.simplefilter("ignore")
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")  # the peak is that of now
    before = peak()
    rng = random.Random(f"{form} {seed}")
    for case in range(count):
        at[:8] = case.to_bytes(8, "little")
        content = mutated(rng, contents)
        where = f"{form}, seed {seed}, case {case}"
        try:
            decode_pixels(content)
        except DataError as error:
            if not WORDS.search(str(error)) or not str(error).isprintable() or "memory" in str(error):
                yield f"{where}: says {error}\n"
        except BaseException as error:
            yield f"{where}: {type(error).__name__} {error}\n"
        if peak() - before > GROWTH:
            yield f"{where}: grew by {peak() - before:,} bytes\n"
            return


def run(form: str, count: int) -> None:
    if form == "WEBP" and not features.check("webp"):
        pytest.skip("Pillow was built without WebP")
    contents = whole(form)
    found = [each for seed in range(count // BATCH) for each in fallen(form, seed, contents, BATCH)]
    assert found == []


@pytest.mark.parametrize("form", FORMS)
def test_a_thousand_mutated_pictures_give_pixels_or_an_error_in_our_words(form):
    run(form, 1000)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("form", FORMS)
def test_twenty_thousand_mutated_pictures_give_pixels_or_an_error_in_our_words(form):
    run(form, 20_000)


def test_the_gate_bites(monkeypatch):
    contents = whole("PNG")
    monkeypatch.setattr(f"{__name__}.decode_pixels", lambda content: os.kill(os.getpid(), 9))
    assert next(iter(fallen("PNG", 0, contents, 3))) == "PNG, seed 0, case 0: ended with -9"
    monkeypatch.setattr(f"{__name__}.decode_pixels", lambda content: b"x" * (GROWTH + (64 << 20)))
    assert "grew by" in next(iter(fallen("PNG", 0, contents, 3)))
    monkeypatch.setattr(f"{__name__}.decode_pixels", lambda content: 1 / 0)
    assert "ZeroDivisionError" in next(iter(fallen("PNG", 0, contents, 3)))
