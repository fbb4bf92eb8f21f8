"""What is counted and what is named: sinks, sorted heads, steps and places."""

import numpy as np
import pytest

from regard.data.axis import Text
from regard.viewer.html import render
from regard.viewer.trace import AttentionMap, Example, Trace

from ..invented import translation, weights
from .conftest import set_state, until


@pytest.fixture(scope="module")
def page(pages):
    return pages.show(render.html([translation(layers=3)]))


def sinks(page):
    until(page, "[...document.querySelectorAll('.curve h3')].some(each => each.textContent.startsWith('Sink'))")
    return page.locator(".curve", has=page.get_by_role("heading", name="Sink and special mass"))


def test_the_sink_counts_special_keys_and_the_first_only_where_it_is_special(page):
    set_state(page, "#a=decoder.layers.1.cross&h=2&q=1")
    share = translation(layers=3).attention("decoder.layers.1.cross").weights[2, 1, 3]
    until(page, "[...document.querySelectorAll('.curve-here')].at(-1)?.textContent")
    assert "Here: <eos>." in sinks(page).inner_text()
    assert f"{round(100 * float(share))} % on special keys" in sinks(page).inner_text()


def test_without_special_keys_there_is_no_curve_and_the_page_says_so(pages):
    axes = {"q": Text.of(["a", "b"]), "k": Text.of(["x", "y", "z"])}
    page = pages.show(render.html([Trace("plain", (Example(axes, (AttentionMap("cross", "q", "k", weights(1, 2, 3)),)),))]))
    assert "No key is special here" in sinks(page).inner_text()
    assert sinks(page).locator("canvas").count() == 0
    assert np.isclose(weights(1, 2, 3).sum(), 2)


def test_sorted_heads_keep_their_names(page):
    set_state(page, "#a=decoder.layers.1.cross&m=entropy&o=entropy.up")
    until(page, "document.querySelectorAll('.heads-name').length === 12")
    told = page.locator(".heads-name").all_inner_texts()
    labels = [each.get_attribute("aria-label") for each in page.locator("[role=gridcell]").all()]
    wanted = ["L{} H{}".format(*(part.split()[1] for part in label.split(": ")[1].split(", ")[:2])) for label in labels]
    assert told == wanted
    assert sorted(told) == [f"L{layer} H{head}" for layer in range(3) for head in range(4)]
    sizes = "[...document.querySelectorAll('.heads-name')].map(each => [each.scrollWidth - each.clientWidth, parseFloat(getComputedStyle(each).fontSize)])"
    assert all(over <= 0 and size >= 11 for over, size in page.evaluate(sizes))
    entropies = [float(label.split("entropy ")[1]) for label in labels]
    assert entropies == sorted(entropies)


def test_steps_queries_and_places_are_counted_from_one(page):
    set_state(page, "#a=decoder.layers.1.cross&q=1&k=2")
    assert page.locator(".playback-now").first.inner_text().startswith("Step 2 of 4")
    tip = page.locator(".heat-tooltip").inner_text()
    assert "place 2 of 4" in tip
    assert "place 3 of 4" in tip
    page.keyboard.press("t")
    until(page, "document.querySelector('tr[aria-current] td')?.textContent === '2'")
    set_state(page, "#a=decoder.layers.1.cross&q=1&r=1,3")
    until(page, "document.querySelector('.time-range')?.textContent.startsWith('Queries 2 to 3')")
