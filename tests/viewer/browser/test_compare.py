"""Two runs on one page: which is which, and what belongs to neither."""

from pathlib import Path

import pytest

from regard.cli.view import load_traces, name_traces, view
from regard.errors import ConfigError, DataError, UnwritableError
from regard.viewer.html import render

from ..invented import translation
from .conftest import set_state, until


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "additive.attn.safetensors", tmp_path / "luong.attn.safetensors"]
    for seed, path in enumerate(paths):
        translation(seed, name="translate").save(path)
    return paths


def test_two_traces_of_one_name_are_called_as_their_files_are(files, watched):
    traces = load_traces([str(path) for path in files], None, "cpu")
    page = watched.show(render.html(traces))
    assert page.locator(".compare-name").all_inner_texts() == ["additive", "luong"]


def test_two_files_of_one_name_are_called_by_their_whole_path(files, tmp_path):
    (tmp_path / "b").mkdir()
    again = tmp_path / "b" / files[0].name
    translation(1, name="translate").save(again)
    assert [trace.name for trace in load_traces([str(files[0]), str(again)], None, "cpu")] == [str(files[0]), str(again)]


def test_traces_with_names_of_their_own_keep_them(files):
    assert [trace.name for trace in name_traces([translation(name="a"), translation(name="b")], files)] == ["a", "b"]


def test_curves_at_the_edges_belong_to_one_run_and_a_difference_has_none(watched):
    page = watched.show(render.html([translation(), translation(4, name="b")]), fragment="#q=1")
    until(page, "document.querySelector('.heat-below') !== null")
    palettes = page.get_by_label("Palette").count()
    for mode in ("difference", "swipe"):
        page.locator(f".compare-{mode}").click()
        until(page, "document.querySelector('.heat-below') === null")
        assert page.get_by_label("Palette").count() == (0 if mode == "difference" else palettes)
    page.locator(".compare-b").click()
    until(page, "document.querySelector('.heat-below') !== null")


def test_the_legend_of_a_difference_says_which_run_is_which(watched):
    page = watched.show(
        render.html([translation(name="additive"), translation(4, name="luong")]), fragment="#c=difference&q=1"
    )
    until(page, "document.querySelectorAll('.heat-side').length === 2")
    sides = [each.replace("\u2068", "").replace("\u2069", "") for each in page.locator(".heat-side").all_inner_texts()]
    assert sides == ["B (luong) reads more", "A (additive) reads more"]
    page.keyboard.press("l")
    until(page, "document.querySelector('.lines .quiet')?.textContent.includes('luong')")
    page.keyboard.press("c")
    page.keyboard.press("h")
    until(page, "document.querySelector('.heat-legend') && !document.querySelector('.heat-side')")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"head": 0}, "--head is for a figure; add --figure heatmap, or drop it"),
        ({"example": 1}, "--example is for a figure; add --figure heatmap, or drop it"),
        ({"beam": 4}, "--beam is for a model; a trace holds a finished search, so drop it"),
        ({"figure": "heatmap", "out": "two.png"}, "a figure is of one trace, got two; a page compares them: drop --figure"),
        ({"html": "nowhere/x.html"}, "cannot write nowhere/x.html: there is no directory nowhere; make it first"),
    ],
)
def test_what_would_be_passed_over_in_silence_is_refused(files, options, told, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    paths = {name: Path(value) for name, value in options.items() if name in ("html", "out")}
    with pytest.raises((ConfigError, DataError, UnwritableError)) as refused:
        view([str(path) for path in files], **{**options, **paths})
    assert str(refused.value) == told


SIDES = "document.querySelector('.heat-sides')?.textContent.replace(/[\\u2068\\u2069]/g, '')"
FINDING = "document.querySelector('.heat-finding').textContent"


@pytest.fixture(scope="module")
def pair():
    """Two models, of which B has one layer more."""
    return [translation(name="additive"), translation(4, layers=3, name="luong")]


@pytest.fixture(scope="module")
def page(pages, pair):
    return pages.show(render.html(pair))


def test_b_and_the_difference_and_the_swipe_show_one_attention_of_b_named_beside_the_legend(page):
    set_state(page, "#c=b&a=decoder.layers.1.cross")
    until(page, f"{SIDES} === 'B (luong): decoder.layers.1.cross'")
    page.get_by_label("Attention of B").select_option("decoder.layers.2.cross")
    until(page, f"{SIDES} === 'B (luong): decoder.layers.2.cross'")
    for mode, sign in (("difference", "−"), ("swipe", "|")):
        page.locator(f".compare-{mode}").click()
        until(
            page,
            f"wanted => {SIDES} === wanted",
            f"A (additive): decoder.layers.1.cross {sign} B (luong): decoder.layers.2.cross",
        )
    page.locator(".compare-a").click()
    until(page, f"{SIDES} === 'A (additive): decoder.layers.1.cross'")
    until(page, "location.hash.includes('ab=decoder.layers.2.cross')")


def test_the_difference_is_of_the_attention_that_was_chosen_in_b(page, pair):
    for other in ("decoder.layers.0.cross", "decoder.layers.2.cross"):
        first, second = pair[0].attention("decoder.layers.1.cross").weights[1], pair[1].attention(other).weights[1]
        set_state(page, f"#c=difference&a=decoder.layers.1.cross&ab={other}&h=1&q=2&k=0")
        number = f"{abs(first[2, 0] - second[2, 0]):.3g}"
        until(page, f"number => {FINDING}.includes(number)", number)


def test_b_s_attention_goes_with_a_s_until_another_is_chosen(page):
    set_state(page, "#c=difference&a=decoder.layers.1.cross")
    page.keyboard.press("[")
    wanted = "A (additive): decoder.layers.0.cross − B (luong): decoder.layers.0.cross"
    until(page, f"wanted => {SIDES} === wanted", wanted)
    set_state(page, "#c=b&a=decoder.layers.1.cross&lang=zh")
    page.keyboard.press("]")
    until(page, f"{SIDES} === 'B（luong）：decoder.layers.2.cross'")
    page.locator(".compare-a").click()
    until(page, f"{SIDES} === 'A（additive）：decoder.layers.1.cross'")
