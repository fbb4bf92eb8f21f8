"""What is painted is what was recorded: exact colours of exact cells, at every zoom, in page and figure alike."""

import base64
import random

import numpy as np
import pytest

from regard.viewer import palettes
from regard.viewer.html import render
from regard.viewer.html.server import Server
from regard.viewer.metrics.quantise import quantise

from ..invented import large, translation
from .conftest import until


def expected(bytes_, query, key, high, wide):
    """The largest byte of the block that a cell is in."""
    row, column = (query >> high) << high, (key >> wide) << wide
    return int(bytes_[row : row + (1 << high), column : column + (1 << wide)].max())


def check(page, bytes_, table, cells):
    for query, key in cells:
        found = page.evaluate("([query, key]) => window.probe(query, key)", [query, key])
        if found is None:
            continue
        byte = expected(bytes_, query, key, found["high"], found["wide"])
        assert found["byte"] == byte, (query, key, found)
        assert found["actual"] == [*table[byte].tolist(), 255], (query, key, found)
        yield found


@pytest.mark.parametrize("served", [False, True])
def test_random_cells_at_random_zooms_have_the_colour_of_their_weight(watched, served):
    trace = large(900, 1300)
    bytes_ = quantise(trace.attention().weights[0])
    table = palettes.table("cividis")
    peak = (900 // 7, 1300 * 5 // 6)
    generator = random.Random(0)
    server = Server([trace]).start()
    page = watched.show(server.url, tiles=True) if served else watched.show(render.html([trace]))
    levels = set()
    for zoom in range(12):
        if zoom:
            high, wide = generator.randint(3, 900), generator.randint(3, 1300)
            top = max(0, min(900 - high, peak[0] - generator.randrange(high)))
            left = max(0, min(1300 - wide, peak[1] - generator.randrange(wide)))
            page.evaluate("hash => { location.hash = hash }", f"win={top},{left},{top + high},{left + wide}")
        until(
            page, "([query, key]) => { const seen = window.probe(query, key); return seen && seen.byte === 255 }", list(peak)
        )
        cells = [(generator.randrange(900), generator.randrange(1300)) for _ in range(12)]
        if served:
            page.wait_for_load_state("networkidle")
        for found in check(page, bytes_, table, [peak, *cells]):
            levels.add((found["high"], found["wide"]))
    server.close()
    assert len(levels) >= 3


def test_the_page_has_the_palettes_of_the_figures_byte_by_byte(watched):
    page = watched.show(render.html([translation()]))
    told = page.evaluate("JSON.parse(document.getElementById('payload').textContent).palettes")
    for name, data in told.items():
        assert np.array_equal(np.frombuffer(base64.b64decode(data), np.uint8).reshape(-1, 3), palettes.table(name)), name
    assert {"cividis", "viridis", "magma", "greys", "balance"} <= set(told)


@pytest.mark.parametrize("palette", ["viridis", "magma", "greys"])
def test_every_palette_paints_its_own_colours(watched, palette):
    trace = translation()
    page = watched.show(render.html([trace]), fragment=f"#p={palette}&a=decoder.layers.1.cross&h=2")
    bytes_ = quantise(trace.attention("decoder.layers.1.cross").weights[2])
    cells = [(query, key) for query in range(4) for key in range(4)]
    assert len(list(check(page, bytes_, palettes.table(palette), cells))) == 16


def test_a_transposed_map_shows_the_same_weights(watched):
    trace = translation()
    page = watched.show(render.html([trace]), fragment="#a=decoder.layers.0.cross&h=1")
    page.keyboard.press("x")
    bytes_ = quantise(trace.attention("decoder.layers.0.cross").weights[1])
    cells = [(query, key) for query in range(4) for key in range(4)]
    assert len(list(check(page, bytes_, palettes.table("cividis"), cells))) == 16


def test_the_difference_of_two_traces_is_exact(watched):
    first, second = translation(), translation(7, name="b")
    page = watched.show(render.html([first, second]), fragment="#a=decoder.layers.1.cross&h=0&c=difference&up=one")
    a, b = (
        each.attention("decoder.layers.1.cross").weights[0].astype(np.float16).astype(np.float64) for each in (first, second)
    )
    table = palettes.table("balance")
    for query in range(4):
        for key in range(4):
            found = page.evaluate("([query, key]) => window.probe(query, key)", [query, key])
            apart = a[query, key] - b[query, key]
            byte = 128 + round(127 * np.sign(apart) * np.sqrt(abs(apart)))
            assert abs(found["byte"] - byte) <= 1
            assert found["actual"][:3] == table[found["byte"]].tolist()


def test_what_a_query_may_not_see_is_hatched_and_not_zero(watched):
    page = watched.show(render.html([translation()]), fragment="#a=decoder.layers.0.self&h=0")
    seen = page.evaluate("[window.probe(0, 0), window.probe(0, 3)]")
    assert seen[0]["actual"][3] == 255
    assert seen[1]["actual"][3] == 0, "nothing is painted there: the hatching lies below"
    assert "hatched" in page.inner_text("body").lower() or page.locator(".heat-hatched").count() == 1
