"""The range of the colours: up to 1, up to the largest weight, or up to a number; both ways where weights are negative."""

import numpy as np
import pytest

from regard.viewer.html import render
from regard.viewer.html.server import Server
from regard.viewer.palettes import table

from ..invented import large, negative, picture, translation
from .conftest import set_state, until

LAST = "document.querySelectorAll('.heat-legend > span')"
PROBE = "([query, key]) => window.probe && window.probe(query, key)"


def ends(page) -> list[str]:
    until(page, "document.querySelector('.heat-legend') !== null")
    return page.locator(".heat-legend > span:not(.heat-ramp):not(.heat-side)").all_inner_texts()


@pytest.fixture(scope="module")
def page(pages):
    return pages.show(render.html([translation()]))


@pytest.fixture(scope="module")
def patches():
    """A caption whose weights over the patches are all small."""
    trace = picture()
    attention = trace.attention()
    weights = np.random.default_rng(3).uniform(0.01, 0.09, attention.weights.shape).astype(np.float32)
    object.__setattr__(attention, "weights", weights / weights.sum(-1, keepdims=True))
    return trace


def test_few_tokens_end_at_1_and_the_largest_and_a_number_can_be_chosen(page):
    set_state(page, "#a=decoder.layers.1.cross&h=0")
    assert ends(page) == ["0", "1.00"]
    choice = page.get_by_label("Colours up to").first
    choice.select_option("largest")
    most = float(translation().attention("decoder.layers.1.cross").weights[0].max())
    until(page, "location.hash.includes('up=largest')")
    assert float(ends(page)[1].removeprefix("≈")) == pytest.approx(most, abs=0.01)
    choice.select_option("chosen")
    page.locator("input[type=number]").fill("0.25")
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('up=0.25')")
    assert ends(page) == ["0", "≥0.250"]


def test_what_lies_beyond_the_range_has_the_last_colour_and_what_lies_within_is_stretched(page):
    weights = translation().attention("decoder.layers.1.cross").weights[0]
    set_state(page, "#a=decoder.layers.1.cross&h=0&up=0.25")
    for query, key in np.ndindex(4, 4):
        probe = until(page, PROBE, [query, key])
        place = round(255 * min(1.0, (probe["byte"] / 255) * 2))
        assert probe["actual"][:3] == table("cividis")[place].tolist()
        assert (place == 255) == (round(255 * np.sqrt(weights[query, key])) >= 128)


def test_a_picture_s_patches_are_no_longer_one_dark_colour(pages, patches):
    page = pages.show(render.html([patches]), fragment="#v=heatmap")
    brightest = max(until(page, PROBE, [query, key])["actual"][0] for query in range(2) for key in range(17))
    assert brightest == table("cividis")[255][0]


def test_a_served_page_finds_the_largest_weight_from_its_tiles(pages):
    with Server([large(300, 400)]) as server:
        page = pages.show(server.url, tiles=True)
        until(page, "window.probe && window.probe(1, 1)")
        assert ends(page)[1] == "≈1.0"


def test_negative_weights_go_both_ways_from_the_middle_of_a_two_sided_palette(pages):
    trace = negative()
    weights = trace.attention().weights[1]
    page = pages.show(render.html([trace]), fragment="#h=1&q=0&k=0")
    most = float(np.abs(weights).max())
    low, high = ends(page)
    assert low.startswith("≈−")
    assert float(high.removeprefix("≈+")) == pytest.approx(most, abs=0.02)
    for query, key in np.ndindex(5, 6):
        probe = until(page, PROBE, [query, key])
        assert np.sign(probe["byte"] - 128) == np.sign(weights[query, key])
        assert probe["actual"] == probe["expected"]
    query, key = np.unravel_index(np.abs(weights).argmax(), weights.shape)
    corner = table("balance")[255 if weights[query, key] > 0 else 1].tolist()
    assert until(page, PROBE, [int(query), int(key)])["actual"][:3] == corner
    page.keyboard.press("t")
    first = page.locator(".table tbody tr").first.locator("td[data-key]").first
    assert first.get_attribute("data-key") == str(np.abs(weights[0]).argmax())


def test_cells_of_which_nothing_is_known_are_hatched_as_the_legend_says(pages):
    page = pages.show(render.html([large(200, 200)], budget=30_000))
    until(page, "document.querySelector('.heat-hatched') !== null")
    until(page, "window.probe && window.probe(0, 0)")
    assert "strongest" in page.locator(".link-missing").inner_text()
    assert until(page, PROBE, [100, 5])["actual"] != until(page, PROBE, [100, 5])["expected"]
    assert until(page, PROBE, [100, 100])["actual"] == until(page, PROBE, [100, 100])["expected"]
