import io

import numpy as np
import pytest
from PIL import Image

from regard.data.image.formats import kind


def saved(image: Image.Image, form: str, **settings) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **settings)
    return out.getvalue()


@pytest.mark.parametrize(("form", "name"), [("PNG", "PNG"), ("JPEG", "JPEG"), ("WEBP", "WebP")])
def test_a_picture_is_known_by_its_first_bytes(form, name):
    content = saved(Image.new("RGB", (3, 2)), form)
    found = kind(content)
    assert found.name == name
    assert found.whole(content[:30], len(content), content[-20:])
    assert not found.whole(content[:30], len(content) - 12, content[-32:-12])
    assert found.opener()(io.BytesIO(content)).size == (3, 2)


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF", "PPM", "ICO"])
def test_no_other_format_is_known(form):
    assert kind(saved(Image.new("RGB", (16, 16)), form)) is None


@pytest.mark.parametrize("settings", [{"lossless": True}, {"lossless": False}, {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}])
@pytest.mark.parametrize("size", [(1, 1), (300, 7), (5, 1031)])
def test_the_header_of_every_webp_says_its_size(settings, size):
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
    content = saved(Image.fromarray(noise), "WEBP", **settings)
    assert kind(content).early_size(content) == size


def test_a_webp_too_short_for_a_header_has_no_size():
    assert kind(b"RIFF\4\0\0\0WEBP").early_size(b"RIFF\4\0\0\0WEBP") is None
    strange = b"RIFF\4\0\0\0WEBPJUNK" + bytes(20)
    assert kind(strange).early_size(strange) is None
