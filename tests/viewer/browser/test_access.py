"""The page can be read by everybody: axe finds nothing, in any theme, language or view."""

from pathlib import Path

import pytest

from regard.viewer.html import render
from regard.viewer.html.server import Model, Server

from ..invented import forecast, picture, sound, translation

AXE = Path(__file__).parents[3] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def axe(node_modules):
    return AXE.read_text(encoding="utf-8")


def violations(page, axe):
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [f"{each['impact']} {each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


LOOKS = [
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"forced_colors": "active"},
    {"locale": "zh-CN"},
    {"viewport": {"width": 420, "height": 900}},
]


@pytest.mark.parametrize("options", LOOKS, ids=lambda options: "-".join(map(str, options.values()))[:20])
def test_axe_finds_nothing(watched, axe, options):
    page = watched.show(
        render.html([translation(), translation(3, name="b")]), fragment="#q=1&k=2", bypass_csp=True, **options
    )
    assert violations(page, axe) == []


@pytest.mark.parametrize("view", ["lines", "tokens", "overlay", "table"])
def test_axe_finds_nothing_in_any_view(watched, axe, view):
    for scheme in ("light", "dark"):
        page = watched.show(render.html([translation()]), fragment=f"#v={view}&q=1", bypass_csp=True, color_scheme=scheme)
        assert violations(page, axe) == []


@pytest.mark.parametrize("make", [picture, sound, forecast])
def test_axe_finds_nothing_over_other_sources(watched, axe, make):
    page = watched.show(render.html([make()]), fragment="#v=overlay&q=1", bypass_csp=True)
    assert violations(page, axe) == []


def test_axe_finds_nothing_in_the_dialogs(watched, axe):
    page = watched.show(render.html([translation()]), bypass_csp=True)
    page.keyboard.press("?")
    assert violations(page, axe) == []


def test_every_canvas_that_says_something_says_it_in_words(watched):
    page = watched.show(render.html([translation()]), fragment="#q=2")
    for canvas in page.locator("canvas:visible").all():
        said, hidden = canvas.get_attribute("aria-label"), canvas.evaluate("each => !!each.closest('[aria-hidden=true]')")
        assert (
            hidden
            or (canvas.get_attribute("role") == "img" and said)
            or canvas.evaluate("each => !!each.closest('[aria-label]')")
        )
    assert "杰瑞" in page.locator("canvas.heat-matrix").get_attribute("aria-label")


def test_the_table_is_the_matrix(watched):
    trace = translation()
    page = watched.show(render.html([trace]), fragment="#v=table&a=decoder.layers.1.cross&h=3&top=4")
    weights = trace.attention("decoder.layers.1.cross").weights[3]
    rows = page.locator(".table tbody tr").all()
    assert len(rows) == 4
    for query, row in enumerate(rows):
        text = row.inner_text()
        for key, label in enumerate(("Tom", "chase", "Jerry", "<eos>")):
            assert label in text
            assert f"{weights[query, key]:.3g}"[:4] in text or f"{weights[query, key]:.3f}"[:4] in text, (
                text,
                weights[query],
            )


def test_buttons_are_large_enough_to_be_hit(watched):
    page = watched.show(render.html([translation()]))
    for button in page.locator("button:visible, select:visible").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 23.5, button.evaluate("each => each.outerHTML.slice(0, 120)")


def test_tokens_carry_their_language_and_direction(watched):
    page = watched.show(render.html([translation()]), fragment="#v=tokens&q=1")
    assert page.locator('[lang="zh-Hans"]').count() > 0
    assert page.locator("[dir=auto], bdi").count() > 0


@pytest.mark.parametrize("fragment", ["#v=lines&lh=0,1,2,3", "#up=0.3&q=1&k=2", "#m=entropy&o=entropy.up"])
def test_axe_finds_nothing_where_something_was_chosen(watched, axe, fragment):
    page = watched.show(render.html([translation()]), fragment=fragment, bypass_csp=True)
    assert violations(page, axe) == []


def test_axe_finds_nothing_on_a_page_that_takes_a_new_input(watched, axe):
    with Server([translation()], model=Model("text", lambda text: [translation()])) as server:
        page = watched.show(server.url, tiles=True, bypass_csp=True)
        assert violations(page, axe) == []
    watched.faults = [fault for fault in watched.faults if "404" not in fault]  # the favicon, which the policy forbids
