"""The network fits the room that it has, its words can be read, and it says where in it one is."""

import pytest

from regard.viewer.html import render

from ..invented import translation
from .conftest import until

FIT = """(() => {
  const it = document.querySelector('.network-window'), box = it.getBoundingClientRect();
  const zoom = new DOMMatrix(getComputedStyle(it.querySelector('.network-sheet')).transform).a;
  const words = [...it.querySelectorAll('.network-name, .network-fact, .network-header, .network-lines text')];
  return {
    wide: it.scrollWidth - it.clientWidth, tall: it.scrollHeight - it.clientHeight, below: innerHeight - box.bottom,
    smallest: Math.min(...words.map(each => parseFloat(getComputedStyle(each).fontSize))) * zoom,
    used: it.querySelector('.network-room').getBoundingClientRect().width / it.clientWidth,
    clipped: words.filter(each => each.clientWidth && each.scrollWidth > each.clientWidth + 1).map(each => each.textContent),
  };
})()"""


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (2560, 1300), (420, 900)])
def test_the_network_fits_its_panel_with_words_of_11_pixels_or_more(pages, width, height):
    page = pages.show(render.html([translation(layers=3)]), viewport={"width": width, "height": height})
    until(page, f"{FIT}.wide <= 0")
    fit = page.evaluate(FIT)
    assert fit["smallest"] >= 11
    assert fit["used"] > 0.6, "what there is of width is used"
    assert fit["clipped"] == []
    assert fit["tall"] <= 0 or width < 900 or fit["below"] < 40, "nothing is cut off above an empty space"


def test_the_sentence_says_where_the_attention_is_and_where_attention_is_sharpest(pages):
    page = pages.show(render.html([translation(layers=3)]), fragment="#a=decoder.layers.1.cross")
    told = page.locator(".network-finding").inner_text()
    assert told.startswith(
        "Where: decoder › layers.1.cross. It reads source (4) for target (4) with 4 heads; one of 9 attentions"
    )
    assert "Most decided: " in told
    page.locator(".network-box.looks", has_text="self").first.click()
    until(page, "document.querySelector('.network-finding').textContent.includes('.self. It reads')")
    page.keyboard.press("z")
    until(page, "document.querySelector('.network-finding').textContent.startsWith('位置：')")
