"""Pictures, sounds and series open on themselves."""

import numpy as np
import pytest

from regard.data.axis import Image, Text
from regard.viewer.html import render
from regard.viewer.trace import AttentionMap, Example, Trace

from ..invented import forecast, picture, sound, translation, weights
from .conftest import set_state, until

PIXEL = """([at, x, y]) => { const it = document.querySelectorAll('.overlay-image canvas')[at];
    return [...it.getContext('2d').getImageData(x * it.width, y * it.height, 1, 1).data] }"""


@pytest.mark.parametrize(
    ("make", "view"), [(picture, "overlay"), (sound, "overlay"), (forecast, "overlay"), (translation, "heatmap")]
)
def test_every_kind_of_source_opens_on_the_view_that_shows_it(pages, make, view):
    page = pages.show(render.html([make()]))
    assert page.locator(f"#link-tab-{view}").get_attribute("aria-selected") == "true"


@pytest.fixture(scope="module")
def page(pages):
    return pages.show(render.html([picture()]))


def test_the_plain_picture_stands_beside_the_shaded_one_and_can_be_put_away(page):
    set_state(page, "#h=0&q=0")
    until(page, "document.querySelectorAll('.overlay-image canvas').length === 2")
    until(page, f"({PIXEL})([1, 0.5, 0.5])[0] === 200")
    assert page.evaluate(PIXEL, [1, 0.5, 0.5]) == [200, 120, 40, 255]
    first, second = (each.bounding_box() for each in page.locator(".overlay-image canvas").all())
    assert first["y"] == second["y"]
    page.get_by_role("button", name="Plain picture beside it").click()
    until(page, "document.querySelectorAll('.overlay-image canvas').length === 1")


def test_the_opacity_goes_from_the_picture_alone_to_all_of_the_shade(page):
    strongest = int(picture().attention().weights[0, 0, 1:].argmax())
    at = [0, (strongest % 4 + 0.5) / 4, (strongest // 4 + 0.5) / 4]
    set_state(page, "#h=0&q=0&op=0")
    until(
        page, "([at, wanted]) => JSON.stringify((" + PIXEL + ")(at).slice(0, 3)) === JSON.stringify(wanted)", [at, bare(at)]
    )
    page.get_by_label("Opacity of the weights").fill("100")
    until(page, "location.hash.includes('op=1')")
    assert page.evaluate(PIXEL, at)[:3] != bare(at)


def bare(at) -> list[int]:
    return picture().example().axes["patches"].pixels[int(at[2] * 64), int(at[1] * 64)].tolist()


def test_every_word_of_a_caption_has_its_picture(pages):
    words = [f"word{place}" for place in range(10)]
    pixels = np.full((32, 32, 3), 90, np.uint8)
    axes = {"caption": Text.of(words), "patches": Image((4, 4), (32, 32), pixels)}
    trace = Trace("caption", (Example(axes, (AttentionMap("cross", "caption", "patches", weights(1, 10, 16)),)),))
    page = pages.show(render.html([trace]))
    until(page, "document.querySelectorAll('.overlay-every li').length === 10")
    assert page.locator(".overlay-every li bdi").all_inner_texts() == words
    assert "All 10 queries" in page.locator(".overlay-every").inner_text()
    page.locator(".overlay-every li button").nth(7).click()
    until(page, "location.hash.includes('q=7')")


def test_a_long_caption_goes_by_pages_and_says_so(pages):
    axes = {"caption": Text.of([f"w{place}" for place in range(130)]), "patches": Image((2, 2), (8, 8))}
    trace = Trace("long", (Example(axes, (AttentionMap("cross", "caption", "patches", weights(1, 130, 4)),)),))
    page = pages.show(render.html([trace]), fragment="#q=125&lang=zh")
    until(page, "document.querySelectorAll('.overlay-every li').length === 10")
    assert "第 121 到 130 个，共 130 个" in page.locator(".overlay-every").inner_text()
