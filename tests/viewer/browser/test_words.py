"""Words of every script stand where they belong on the page."""

import numpy as np

from regard.viewer.page import render
from regard.viewer.trace import Trace

from ..invented import softmax
from .conftest import until


def trace(queries, keys):
    scores = np.random.default_rng(0).normal(size=(1, len(queries), len(keys))).astype(np.float32)
    return Trace.from_arrays(softmax(scores), query=queries, key=keys)


def test_a_sentence_about_an_arabic_word_runs_as_the_page_does(watched):
    page = watched.show(render.html([trace(["مرحبا", "b"], ["x", "y", "z"])]), fragment="#q=0")
    until(page, "[...document.querySelectorAll('.curve-here')].some(each => each.textContent.includes('مرحبا'))")
    assert (
        page.evaluate("[...document.querySelectorAll('.curve-here')].map(each => getComputedStyle(each).direction)")
        == ["ltr"] * page.locator(".curve-here").count()
    )


def test_a_number_of_a_place_is_never_broken_in_two(watched):
    page = watched.show(render.html([Trace.from_arrays(softmax(np.zeros((60, 3), np.float32)))]), fragment="#v=tokens&q=1")
    page.locator(".token").first.wait_for()
    lines = "[...document.querySelectorAll('.passage.query .token')].map(each => each.getClientRects().length)"
    assert page.evaluate(lines) == [1] * 60


def test_the_name_of_the_curve_below_stands_beside_it_however_short_other_names_are(watched):
    page = watched.show(render.html([trace(["a", "b"], ["c", "d"])]))
    page.locator(".heat-below").wait_for()
    assert page.evaluate(
        "(() => { const it = document.querySelector('.heat-below'); return it.scrollWidth <= it.clientWidth })()"
    )
