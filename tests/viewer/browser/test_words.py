"""Words of every script stand where they belong on the page."""

import numpy as np

from regard.data.axis import Index
from regard.viewer import source
from regard.viewer.html import render
from regard.viewer.trace import AttentionMap, Example, Trace

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


def test_how_weights_came_about_is_told_as_in_python_and_in_chinese(watched):
    codes = [each + ("sdpa" if each.endswith(":") else "") for each in source.SENTENCES]
    attentions = tuple(
        AttentionMap(f"a{at}", "q", "k", softmax(np.zeros((1, 2, 3))), source=code) for at, code in enumerate(codes)
    )
    page = watched.show(render.html([Trace("t", (Example({"q": Index(2), "k": Index(3)}, attentions),))]), fragment="#a=a0")
    told = "document.querySelector('.link-about p').textContent"
    for code in codes:
        until(page, f"wanted => {told}.includes(wanted)", f"Weights: {source.describe(code)}.")
        page.keyboard.press("]")
    page.keyboard.press("z")
    until(page, f"{told}.includes('权重来源：')")
    assert "weights" not in page.evaluate(told)


def test_heads_are_sorted_by_their_alignment_error(watched):
    heads = np.stack([np.eye(3)[[1, 0, 2]], np.eye(3)]).astype(np.float32)
    made = Trace.from_arrays(heads, query=["x", "y", "z"], key=["a", "b", "c"], gold=[(0, 0), (1, 1), (2, 2)])
    page = watched.show(render.html([made]), fragment="#m=alignment&o=alignment.up")
    until(page, "document.querySelectorAll('[role=gridcell]').length === 2")
    labels = "[...document.querySelectorAll('[role=gridcell]')].map(each => each.getAttribute('aria-label'))"
    assert page.evaluate(labels) == [
        "L0 H1: layer 0, head 1, alignment error 0",
        "L0 H0: layer 0, head 0, alignment error 0.667",
    ]
