"""Lines of several heads at once, and between one sentence and another."""

import numpy as np
import pytest

from regard.data.axis import Text
from regard.viewer.html import render
from regard.viewer.trace import AttentionMap, Example, Trace

from ..invented import weights
from .conftest import set_state, until

WORDS = ("[CLS]", "cats", "sleep", "[SEP]", "dogs", "bark", "loud", "[SEP]")
FIRST = {0, 1, 2, 3}


@pytest.fixture(scope="module")
def bert():
    """A sentence pair as an encoder reads it."""
    axes = {"tokens": Text.of(WORDS, special=(0, 3, 7), lang="en")}
    return Trace("bert", (Example(axes, (AttentionMap("layer.0.self", "tokens", "tokens", weights(12, 8, 8)),)),))


@pytest.fixture(scope="module")
def page(pages, bert):
    return pages.show(render.html([bert]))


def strands(page) -> set[tuple[str, str]]:
    """Head and ends of every line, as its title says them."""
    titles = page.locator(".lines-drawing g > title").evaluate_all("all => all.map(each => each.textContent)")
    return {(title.rpartition(": ")[0].split(": ")[0], title.rpartition(": ")[0].split(": ")[-1]) for title in titles}


def wanted(bert, head: int, top: int) -> set[tuple[str, str]]:
    matrix = bert.attention().weights[head]
    best = np.argsort(-matrix, axis=1)[:, :top]
    return {(f"head {head}", f"{WORDS[query]} → {WORDS[key]}") for query in range(8) for key in best[query]}


def test_heads_are_drawn_together_each_in_its_colour(page, bert):
    set_state(page, "#v=lines&top=2")
    for head in (1, 4):
        page.get_by_role("button", name=f"head {head}", exact=True).click()
    until(page, "document.querySelectorAll('.lines-drawing [data-head=\"4\"]').length > 0")
    assert strands(page) == wanted(bert, 1, 2) | wanted(bert, 4, 2)
    colour = "head => getComputedStyle(document.querySelector(`.lines-drawing path.strand[data-head='${head}']`)).stroke"
    assert page.evaluate(colour, "1") != page.evaluate(colour, "4")
    until(page, "location.hash.includes('lh=1,4')")
    assert "Heads 1, 4, each in its colour" in page.locator(".lines").inner_text()


def test_all_heads_of_a_layer_are_one_press_away_and_more_than_eight_are_told_apart_by_dashes(page):
    set_state(page, "#v=lines&top=1")
    page.keyboard.press("K")
    until(
        page,
        "new Set([...document.querySelectorAll('.lines-drawing [data-head]')].map(each => each.dataset.head)).size === 12",
    )
    look = """head => { const it = getComputedStyle(document.querySelector(`.lines-drawing path.strand[data-head='${head}']`));
        return it.stroke + it.strokeDasharray }"""
    assert len({page.evaluate(look, str(head)) for head in range(12)}) == 12
    page.keyboard.press("K")
    until(page, "document.querySelectorAll('.lines-drawing [data-head]').length === 0")


def test_lines_go_from_one_sentence_to_the_other_where_that_is_asked_for(page):
    set_state(page, "#v=lines&h=0&top=3")
    choice = page.get_by_label("Sentences")
    assert choice.locator("option").all_inner_texts() == [
        "all", "sentence A → A", "sentence A → B", "sentence B → A", "sentence B → B",
    ]  # fmt: skip
    choice.select_option("0,1")
    until(page, "location.hash.includes('se=0,1')")
    ends = [line.split(" → ") for _, line in strands(page)]
    assert len(ends) == 4 * 3
    assert {start for start, _ in ends} == {WORDS[place] for place in FIRST}
    assert {end for _, end in ends} <= {WORDS[place] for place in range(8) if place not in FIRST}
    set_state(page, "#v=lines&h=0&top=3&lang=zh")
    assert page.get_by_label("句子").count() == 1
