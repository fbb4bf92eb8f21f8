"""Looking closer: the map keeps its size, and a reader chooses what a pixel of many cells shows."""

import numpy as np
import pytest

from regard.viewer.html import render
from regard.viewer.html.server import Server
from regard.viewer.metrics.quantise import quantise

from ..invented import large, translation
from .conftest import set_state, until

SIZE = """(() => { const it = document.querySelector('canvas.heat-matrix').getBoundingClientRect();
    return [it.left, it.top, it.width, it.height] })()"""
PROBE = "([query, key]) => window.probe && window.probe(query, key)"


@pytest.mark.parametrize("make", [translation, lambda: large(300, 400)])
def test_the_map_keeps_its_place_and_its_size_while_one_zooms(pages, make):
    page = pages.show(render.html([make()]))
    until(page, "window.probe && window.probe(0, 0)")
    before = page.evaluate(SIZE)
    for _ in range(7):
        page.keyboard.press("+")
        page.wait_for_timeout(50)
        assert page.evaluate(SIZE) == before
    page.locator("canvas.heat-matrix").hover()
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(50)
    assert page.evaluate(SIZE) == before


@pytest.fixture(scope="module")
def matrix():
    """Evenly small weights, and one of 1 in every block of 16 x 16."""
    weights = np.full((1024, 1024), 1e-4, np.float32)
    weights[::16, ::16] = 1
    trace = large(1024, 1024)
    object.__setattr__(trace.attention(), "weights", weights[None])
    object.__setattr__(trace.attention(), "sums_to_one", False)
    return trace


def test_a_pixel_of_many_cells_shows_the_largest_of_them_or_their_mean(pages, matrix):
    page = pages.show(render.html([matrix]))
    weights = matrix.attention().weights[0]
    shown = until(page, PROBE, [512, 512])
    assert shown["byte"] == 255, "by maximum a single strong cell is seen"
    page.get_by_label("A pixel shows the").select_option("mean")
    until(page, "location.hash.includes('by=mean')")
    byte = until(page, "() => { const it = window.probe(512, 512); return it.byte < 255 && it.byte }")
    block = weights[512 : 512 + 2 ** shown["high"], 512 : 512 + 2 ** shown["wide"]]
    assert block.size > 1
    assert abs(byte - int(quantise(np.array([block.mean()]))[0])) <= 1
    set_state(page, "#lang=zh")
    assert page.get_by_label("每个像素显示").count() == 1


def test_a_served_page_fetches_tiles_of_means(pages, matrix):
    with Server([matrix]) as server:
        page = pages.show(server.url, tiles=True)
        until(page, "window.probe && window.probe(512, 512)?.byte === 255")
        page.keyboard.press("M")
        byte = until(page, "() => { const it = window.probe(512, 512); return it.byte > 0 && it.byte < 255 && it.byte }")
        shown = page.evaluate(PROBE, [512, 512])
        block = matrix.attention().weights[0][512 : 512 + 2 ** shown["high"], 512 : 512 + 2 ** shown["wide"]]
        assert abs(byte - int(quantise(np.array([block.mean()]))[0])) <= 1
