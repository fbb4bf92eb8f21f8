import io
import os
import re
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from regard.data.image.reading import BELIEVED, decode, decode_pixels, missing, present, read, read_pixels, size
from regard.data.records import Record, locate
from regard.errors import DataError

NOISE = np.random.default_rng(0).integers(0, 256, (11, 17, 3), np.uint8)


def saved(image: Image.Image, form: str = "PNG", **settings) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **settings)
    return out.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def bomb(width: int, height: int) -> bytes:
    """A PNG of a hundred bytes whose header promises anything."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("form", "settings", "bound"),
    [("PNG", {}, 0), ("WEBP", {"lossless": True}, 0), ("JPEG", {"quality": 100, "subsampling": 0}, 4 / 255)],
)
def test_a_picture_is_read_in_colour_and_in_grey(tmp_path, form, settings, bound):
    path = tmp_path / "no.matter"
    path.write_bytes(saved(Image.fromarray(NOISE), form, **settings))
    found = read(path)
    assert (found.shape, found.dtype) == ((3, 11, 17), torch.float32)
    assert (found - torch.from_numpy(NOISE).permute(2, 0, 1) / 255).abs().max() <= bound
    grey = read(path, channels=1)
    weights = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
    assert (grey - (found * weights).sum(0, keepdim=True)).abs().max() < 1.5 / 255 + bound
    assert size(path) == (11, 17)


def test_one_pixel_is_a_picture():
    assert decode(saved(Image.new("RGB", (1, 1), "red"))).flatten().tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("L", (1, 1), 51), [0.2, 0.2, 0.2]),
        (Image.new("1", (1, 1), 1), [1, 1, 1]),
        (Image.new("RGBA", (1, 1), (255, 0, 0, 0)), [1, 1, 1]),
        (Image.new("RGBA", (1, 1), (0, 0, 0, 204)), [0.2, 0.2, 0.2]),
        (Image.new("LA", (1, 1), (0, 204)), [0.2, 0.2, 0.2]),
        (Image.new("RGB", (1, 1), (255, 51, 0)).quantize(4), [1, 0.2, 0]),
    ],
    ids=["grey", "bits", "clear", "half clear", "grey and clear", "palette"],
)
def test_every_kind_of_colour_is_understood(image, expected):
    assert decode(saved(image)).flatten().tolist() == pytest.approx(expected)


def test_a_palette_with_a_clear_colour_lies_on_white():
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    assert decode(saved(image, transparency=0))[:, 0].T.tolist() == [[1, 1, 1], [0, 0, 1]]


def test_four_inks_become_colours():
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    found = decode(saved(image, "JPEG", quality=100))
    assert found[:, 4, 4].tolist() == pytest.approx([1, 0, 0], abs=0.02)


def test_sixteen_bits_of_grey_keep_their_precision():
    image = Image.fromarray(np.array([[0, 1, 32768, 65535]], np.uint16))
    found = decode(saved(image))
    assert found[0, 0].tolist() == pytest.approx([0, 1 / 65535, 32768 / 65535, 1], abs=1e-7)
    assert torch.equal(found[0], found[2])
    assert decode(saved(image), channels=1).shape == (1, 1, 4)
    assert decode(saved(image, "PNG", transparency=1))[0, 0].tolist() == pytest.approx([0, 1, 32768 / 65535, 1], abs=1e-7)


CORNERS = {1: "rgbw", 2: "grwb", 3: "wbgr", 4: "bwrg", 5: "rbgw", 6: "brwg", 7: "wgbr", 8: "gwrb"}
"""What a picture of red, green / blue, white becomes, row after row."""


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_picture_lies_as_its_camera_was_held(tmp_path, form, orientation):
    colours = {"r": (255, 0, 0), "g": (0, 255, 0), "b": (0, 0, 255), "w": (255, 255, 255)}
    plain = np.array([colours[name] for name in "rgbw"], np.uint8).reshape(2, 2, 3).repeat(16, 0).repeat(24, 1)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "x"
    path.write_bytes(saved(Image.fromarray(plain), form, exif=exif))
    found = read(path)
    assert tuple(found.shape[1:]) == size(path) == ((48, 32) if orientation >= 5 else (32, 48))
    corners = [found[:, row, column] for row in (4, -5) for column in (4, -5)]
    names = "".join(
        min(colours, key=lambda name: float((torch.tensor(colours[name]) / 255 - corner).abs().sum())) for corner in corners
    )
    assert names == CORNERS[orientation]


def test_notes_that_nobody_can_read_turn_nothing():
    content = saved(Image.fromarray(NOISE), "PNG", exif=b"Exif\0\0broken")
    assert decode(content).shape == (3, 11, 17)


def test_of_an_animation_the_first_frame_counts():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    for form in ("WEBP", "PNG"):
        content = saved(frames[0], form, save_all=True, append_images=frames[1:], lossless=True)
        assert decode(content)[:, 2, 2].tolist() == pytest.approx([1, 0, 0], abs=0.01)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_that_ends_early_is_refused_wherever_it_is_cut(monkeypatch, form, lenient):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)  # whatever somebody else has set
    content = saved(Image.fromarray(NOISE), form)
    for end in range(1, len(content), 7 if lenient else 3):
        with pytest.raises(DataError, match=r"cannot be decoded: .*cut off or damaged|is no PNG, JPEG or WebP"):
            decode(content[:end])


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_file_that_ends_early_is_refused_though_nothing_of_it_is_decoded(tmp_path, form):
    large = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 110, 3), np.uint8))
    content, path = saved(large, form, **({"lossless": True} if form == "WEBP" else {})), tmp_path / "x"
    for end in (len(content) // 2, len(content) - 20):
        path.write_bytes(content[:end])
        with pytest.raises(DataError, match=r"t\.tsv:3: .*x is a \w+ picture that cannot be decoded: .*cut off or damaged"):
            size(path, "t.tsv:3")
    path.write_bytes(content + bytes(9000))  # what others write behind a picture is no harm
    assert size(path) == (90, 110)


@settings(max_examples=150)
@given(
    st.sampled_from(["PNG", "JPEG", "WEBP"]),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_damage_gives_a_picture_or_an_error_and_nothing_else(form, changes):
    content = bytearray(saved(Image.fromarray(NOISE), form))
    for where, value in changes:
        content[int(where * len(content))] = value
    with suppress(DataError):
        found = decode(bytes(content), cap=100_000)
        assert 0 <= found.min() <= found.max() <= 1


@pytest.mark.parametrize("content", [bomb(10_000, 10_000), bomb(60_000, 60_000)], ids=["100 megapixels", "3.6 gigapixels"])
def test_a_picture_that_is_too_large_is_refused_by_its_header(tmp_path, content):
    path = tmp_path / "bomb.png"
    path.write_bytes(content)
    side = 10_000 if b"\x00\x00'\x10" in content else 60_000
    for way in (read, size):
        with pytest.raises(
            DataError, match=rf"bomb.png has {side:,} x {side:,} = {side * side:,} pixels, and at most 40,000,000 are read"
        ):
            way(path)


def claiming(width: int, height: int) -> bytes:
    """A progressive JPEG of some hundred bytes whose header claims any size."""
    content = bytearray(saved(Image.new("RGB", (8, 8)), "JPEG", progressive=True, subsampling=0))
    frame = content.index(b"\xff\xc2") + 5
    content[frame : frame + 4] = struct.pack(">HH", height, width)
    return bytes(content)


def test_a_size_that_so_few_bytes_cannot_hold_is_refused_before_anything_is_decoded(tmp_path):
    content = claiming(6300, 6300)
    (tmp_path / "bomb.jpg").write_bytes(content)
    assert len(content) < 700
    for way in (read, read_pixels, size):
        with pytest.raises(
            DataError,
            match=rf"bomb.jpg claims 6,300 x 6,300 = 39,690,000 pixels in {len(content)} bytes: .* each byte may stand for 64",
        ):
            way(tmp_path / "bomb.jpg")


def peak(content: bytes) -> int:
    """Bytes that decoding takes at most, measured in a child: what a header claims is freed again before anybody looks."""
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            with open("/proc/self/clear_refs", "w") as marks:
                marks.write("5")  # the peak is that of now
            before = resident()
            with suppress(DataError):
                decode_pixels(content)
            os.write(ends[1], str(resident() - before).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(ends[1])
    with os.fdopen(ends[0]) as answer:
        return int(answer.read())


def resident() -> int:
    """The peak of resident memory in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) << 10


@pytest.mark.parametrize(
    "content",
    [
        claiming(6300, 6300),
        claiming(4000, 3000),
        saved(Image.new("RGBA", (4000, 3000)), "WEBP", lossless=True),
        saved(Image.new("P", (4000, 3000)), "PNG", transparency=0),
        saved(Image.new("I;16", (4000, 3000)), "PNG"),
    ],
    ids=["jpeg of 40 megapixels", "jpeg", "webp", "palette", "16 bits"],
)
def test_a_small_file_never_takes_256_megabytes(content):
    assert BELIEVED == 3000 * 4000
    assert peak(content) < 256e6


def test_pixels_stay_bytes_until_they_are_resized(tmp_path):
    (tmp_path / "x").write_bytes(saved(Image.fromarray(NOISE)))
    assert torch.equal(read_pixels(tmp_path / "x"), torch.from_numpy(NOISE).permute(2, 0, 1))
    assert decode_pixels(saved(Image.fromarray(np.array([[7, 65535]], np.uint16)))).dtype == torch.float32


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_what_is_wrong_with_a_picture_is_said_without_the_words_of_the_decoder(form):
    content = saved(Image.fromarray(NOISE), form)
    errors = []
    for start in range(0, len(content), 3):
        try:
            decode(content[:start] + b"SECRET" + content[start + 6 :])
        except DataError as error:
            errors.append(str(error))
    assert len(errors) > 10
    faults = r"its (header is damaged|pixels cannot be decoded|end is missing); it may|as its first bytes show|claims"
    assert [error for error in errors if "SECRET" in error or "0x" in error or not re.search(faults, error)] == []


def test_a_picture_that_there_is_no_memory_for_says_so(monkeypatch):
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: (_ for _ in ()).throw(MemoryError("0x7ffe")))
    with pytest.raises(DataError, match="cannot be decoded: there is not enough memory for it; it may be"):
        decode(saved(Image.fromarray(NOISE), "WEBP"))


def test_a_pipe_and_a_device_are_no_pictures(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for way in (read, size):
        with pytest.raises(DataError, match=r"t.tsv:3: .*pipe cannot be read: it is a pipe, and a regular file is needed"):
            way(tmp_path / "pipe", "t.tsv:3")
        with pytest.raises(
            DataError,
            match="/dev/zero cannot be read: it is a device, and a regular file is needed; copy what it holds into one",
        ):
            way("/dev/zero")


def test_a_webp_that_is_too_large_is_refused_before_there_is_room_for_it():
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + (16_000).to_bytes(3, "little") * 2
    with pytest.raises(DataError, match=r"16,001 x 16,001 = 256,032,001 pixels"):
        decode(b"RIFF" + struct.pack("<I", len(body)) + body)


def test_the_cap_can_be_set():
    content = saved(Image.new("L", (10, 10)))
    assert decode(content, cap=100).shape == (3, 10, 10)
    with pytest.raises(DataError, match="10 x 10 = 100 pixels, and at most 99 are read; make it smaller"):
        decode(content, cap=99)


def test_a_file_no_picture_could_fill_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "long"
    with open(path, "wb") as file:
        file.truncate((1 << 24) + 8 * 10 + 1)  # takes no room on the disk
    with pytest.raises(DataError, match="long is longer than 16,777,296 bytes, which no picture of 10 pixels needs"):
        read(path, cap=10)


def test_what_is_no_picture_is_named_with_its_line(tmp_path):
    (tmp_path / "text.png").write_text("hello, world")
    (tmp_path / "empty.png").touch()
    for name, message in [
        ("text.png", r"t.tsv:3: .*text.png is no PNG, JPEG or WebP picture, as its first bytes show; convert it"),
        ("empty.png", r"t.tsv:3: .*empty.png is empty; a picture is needed"),
        ("", r"t.tsv:3: .* is a directory, and a file is needed"),
        ("txt.png", r"t.tsv:3: there is no file .*txt.png; did you mean .*text.png\?"),
        ("a\0b", r"t.tsv:3: .* cannot be read: embedded null byte"),
    ]:
        for way in (read, size):
            with pytest.raises(DataError, match=message):
                way(tmp_path / name, "t.tsv:3")


def test_channels_are_one_or_three():
    with pytest.raises(ValueError, match="1 channel or 3, got 2"):
        decode(b"", channels=2)


def test_paths_count_from_the_folder_of_their_table(tmp_path):
    assert locate(Record("a.png", None, f"{tmp_path}/t.tsv:1")) == tmp_path / "a.png"
    assert locate(Record(str(tmp_path / "a.png"), None, "elsewhere/t.tsv:1")) == tmp_path / "a.png"
    assert str(locate(Record("a.png", None, "stdin:1"))) == "a.png"


def test_a_text_in_the_place_of_a_path_is_a_missing_picture():
    with pytest.raises(DataError, match=r"1 of 1 pictures are missing: table.tsv:1 a long caption"):
        present([Record("a long caption " * 40, "x", "table.tsv:1")])


def test_missing_pictures_are_listed_with_their_lines(tmp_path):
    (tmp_path / "1.png").touch()
    records = [Record(f"{number}.png", "text", f"{tmp_path}/t.tsv:{number}") for number in range(1, 15)]
    assert [record.source for record in missing(records)] == [f"{number}.png" for number in range(2, 15)]
    with pytest.raises(DataError) as raised:
        present(iter(records))
    text = str(raised.value)
    assert text.startswith(f"13 of 14 pictures are missing: {tmp_path}/t.tsv:2 2.png, ")
    assert f"{tmp_path}/t.tsv:11 11.png and 3 more; paths count from the folder of the table" in text
    assert "12.png" not in text
    present(records[:1])
