"""One crosshair and one sentence, for pointer, touch, keys and playback alike: whichever was used last."""

import pytest

from regard.viewer.html import render

from ..invented import large, translation
from .conftest import set_state, until

START = "#a=decoder.layers.1.cross&h=1"
FINDING = "document.querySelector('.heat-finding').textContent"


@pytest.fixture(scope="module")
def opened(pages):
    return pages.show(render.html([translation()]), fragment=START, reduced_motion="no-preference")


@pytest.fixture
def page(opened):
    opened.mouse.move(2, 2)
    set_state(opened, START)
    return opened


def cell(page, query: int, key: int, of: int = 4) -> tuple[float, float]:
    box = page.locator("canvas.heat-matrix").bounding_box()
    return box["x"] + (key + 0.5) * box["width"] / of, box["y"] + (query + 0.5) * box["height"] / of


def sentence(page) -> str:
    return page.locator(".heat-finding").inner_text()


def test_the_sentence_is_there_before_anything_is_chosen(page):
    assert sentence(page).startswith("The sharpest query: “")
    assert page.locator(".heat-finding").is_visible()


def test_the_sentence_follows_the_pointer_and_a_key_takes_over_from_a_pointer_that_rests(page):
    page.mouse.move(*cell(page, 0, 3))
    until(page, f"{FINDING}.startsWith('“汤姆” reads “<eos>”')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    until(page, f"{FINDING}.startsWith('“追逐” reads “Tom”')")
    assert "追逐" in page.locator(".heat-tooltip").inner_text()
    assert "Tom" in page.locator(".heat-tooltip").inner_text()
    page.mouse.move(*cell(page, 3, 2))
    until(page, f"{FINDING}.startsWith('“<eos>” reads “Jerry”')")


def test_playback_takes_the_crosshair_and_the_tooltip_from_a_pointer_that_rests(page):
    page.mouse.move(*cell(page, 0, 3))
    until(page, f"{FINDING}.startsWith('“汤姆” reads “<eos>”')")
    for wanted in ("汤姆", "追逐", "杰瑞"):
        page.keyboard.press(")")
        until(page, f"wanted => {FINDING}.startsWith(`“${{wanted}}” reads mostly`)", wanted)
        assert page.locator(".heat-tooltip").count() == 0


def test_a_curve_s_tip_gives_way_as_well(page):
    page.locator(".curve-drawing").nth(1).hover()
    page.locator(".curve-tip").wait_for()
    page.keyboard.press(")")
    until(page, "document.querySelector('.curve-tip') === null")


def test_a_touch_reads_a_cell_and_leaves_the_page_to_be_scrolled(pages):
    page = pages.show(render.html([translation()]), fragment=START, has_touch=True)
    page.touchscreen.tap(*cell(page, 2, 1))
    until(page, f"{FINDING}.startsWith('“杰瑞” reads “chase”')")
    assert page.evaluate("getComputedStyle(document.querySelector('.heat-stage')).touchAction") == "pan-y"


def test_the_sentence_speaks_chinese(page):
    set_state(page, f"{START}&lang=zh&q=0&k=3")
    until(page, f"{FINDING}.startsWith('“汤姆” 读取 “<eos>”')")


def test_few_cells_have_their_weights_written_in_them_and_many_have_none(page, pages):
    drawn = """selector => { const it = document.querySelector(selector);
        return it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some(each => each > 0) }"""
    until(page, drawn, "canvas.heat-cross")
    many = pages.show(render.html([large(40, 40)]))
    many.wait_for_timeout(100)
    assert not many.evaluate(drawn, "canvas.heat-cross")
