"""A picture that is taken away stands by itself: title, axes, legend, as SVG and as PNG of twice the size."""

import io
import re
from xml.etree import ElementTree

import pytest
from PIL import Image

from regard.viewer.html import render

from ..invented import picture, translation
from .conftest import set_state

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page(pages):
    return pages.show(render.html([translation()]))


def saved(page, button: str) -> bytes:
    page.keyboard.press("e")
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name=button).wait_for(state="detached")  # else the next key opens what is about to close
    return waiting.value.path().read_bytes()


def texts(svg: bytes) -> str:
    return " | ".join("".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text"))


def test_the_heat_map_is_saved_as_a_drawing_with_title_axes_and_legend(page):
    set_state(page, "#a=decoder.layers.1.cross&h=2")
    page.wait_for_timeout(300)
    svg = saved(page, "Drawing of this view")
    told = texts(svg)
    for part in (
        "transformer · decoder.layers.1.cross · head 2",
        "“Tom chase Jerry” → “汤姆追逐杰瑞”",
        "target (queries)",
        "source (keys)",
    ):
        assert part in told
    for name in ("Tom", "Jerry", "<eos>", "追逐", "1.00", "Scale: square root", "received"):
        assert name in told
    root = ElementTree.fromstring(svg)
    assert len(list(root.iter(f"{SVG}image"))) == 1
    weights = translation().attention("decoder.layers.1.cross").weights[2]
    assert f"{weights[0, 0]:.2f}".lstrip("0") in told, "few cells have their weights written in them"
    assert not re.search(rb"https?://(?!www\.w3\.org)", svg)


def test_a_picture_has_two_pixels_for_each_of_the_page_s(page):
    set_state(page, "#a=decoder.layers.1.cross&h=2")
    page.wait_for_timeout(300)
    root = ElementTree.fromstring(saved(page, "Drawing of this view"))
    image = Image.open(io.BytesIO(saved(page, "Picture of this view")))
    assert image.size == (round(2 * float(root.get("width"))), round(2 * float(root.get("height"))))
    assert len(image.convert("RGB").getcolors(1 << 20)) > 40


@pytest.mark.parametrize(
    ("view", "wanted"),
    [
        ("lines", ("追逐", "Jerry", "strongest keys")),
        ("tokens", ("Queries: target", "chase", "汤姆")),
        ("table", ("Query", "Jerry", "追逐")),
    ],
)
def test_every_view_is_saved_with_its_words(page, view, wanted):
    set_state(page, f"#a=decoder.layers.1.cross&h=2&v={view}&q=1&top=2")
    page.wait_for_timeout(300)
    svg = saved(page, "Drawing of this view")
    for part in ("transformer · decoder.layers.1.cross · head 2", *wanted):
        assert part in texts(svg)
    assert view != "lines" or ElementTree.fromstring(svg).find(f".//{SVG}path") is not None


def test_a_picture_with_its_weights_is_saved_in_chinese_too(pages):
    page = pages.show(render.html([picture()]), fragment="#q=0&lang=zh")
    page.wait_for_timeout(300)
    page.keyboard.press("e")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="矢量图").click()
    svg = waiting.value.path().read_bytes()
    assert "一幅图片" in texts(svg)
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}image"))) == 2 + 2
