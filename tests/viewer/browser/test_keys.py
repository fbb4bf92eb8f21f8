"""Every action can be done by a key alone, and the help lists them all."""

import pytest

from regard.viewer.html import render

from ..invented import large, translation
from .conftest import until

START = "#a=decoder.layers.1.cross&h=1&q=1&k=1"


@pytest.fixture
def page(watched):
    return watched.show(render.html([translation(), translation(4, name="b")]), fragment=START)


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("ArrowDown", "q=2"),
        ("ArrowUp", "q=0"),
        ("ArrowRight", "k=2"),
        ("ArrowLeft", "k=0"),
        ("Shift+ArrowDown", "q=3"),
        ("[", "a=decoder.layers.0.cross"),
        (".", "h=2"),
        (",", "h=0"),
        ("c", "c=b"),
        ("t", "v=table"),
        ("l", "v=lines"),
        ("k", "v=tokens"),
        ("o", "v=overlay"),
        ("s", "s="),
        ("p", "p="),
        ("x", "tr=1"),
        ("m", ""),
        ("f", "f="),
        ("z", "lang=zh"),
        ("b", "as=light"),
        ("i", "hf=entropy.least"),
        ("P", "pin=decoder.layers.1.cross:1"),
        ("j", "c=swipe"),
    ],
)
def test_a_key_changes_the_state(page, key, wanted):
    before = page.evaluate("location.hash")
    page.keyboard.press(key)
    until(page, "before => location.hash !== before", before)
    assert wanted in page.evaluate("location.hash")


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("z z", "lang=zh"),
        ("b b b", "as="),
        ("P U", "pin="),
    ],
)
def test_keys_pressed_again_take_back_what_they_did(page, keys, wanted):
    first, *others = keys.split()
    page.keyboard.press(first)
    until(page, "wanted => location.hash.includes(wanted)", wanted)
    for key in others:
        page.keyboard.press(key)
    until(page, "wanted => !location.hash.includes(wanted)", wanted)


def test_the_line_of_the_swipe_goes_by_keys(page):
    for key in ("j", "j", "J", "J"):
        page.keyboard.press(key)
    until(page, "location.hash.includes('c=swipe&sw=0.55')")


def test_the_bound_of_the_filter_goes_by_keys(page):
    page.keyboard.press("i")
    bound = "Number(document.querySelector('.heads-bound input').value)"
    before = until(page, f"document.querySelector('.heads-bound') && {bound}")
    page.keyboard.press("R")
    until(page, f"before => {bound} > before", before)
    page.keyboard.press("r")
    page.keyboard.press("r")
    until(page, f"before => {bound} < before", before)


def test_the_table_is_sorted_by_keys(page):
    for key in ("t", "q", "q", "Q"):
        page.keyboard.press(key)
    until(page, "location.hash.includes('ord=largest:0')")


def test_zoom_goes_in_and_out_and_back_to_all(watched):
    page = watched.show(render.html([large(200, 300)]))
    for key, there in (("+", True), ("+", True), ("-", True), ("0", False)):
        page.keyboard.press(key)
        until(page, "there => location.hash.includes('win=') === there", there)


def test_space_plays_and_stops(page):
    before = page.evaluate("location.hash")
    page.keyboard.press("Space")
    until(page, "before => location.hash !== before", before)
    page.keyboard.press("Space")


@pytest.mark.parametrize(("key", "panel"), [("1", "network"), ("2", "time"), ("3", "link")])
def test_numbers_go_to_the_panels(page, key, panel):
    page.keyboard.press(key)
    assert page.evaluate("document.activeElement.closest('[id^=panel-]').id") == f"panel-{panel}"


def test_help_lists_every_action_with_its_key_and_escape_closes_it(page):
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    listed = page.locator("dialog[open]").inner_text()
    for each in ("↑", "[", "]", "+", "Esc", "?", "/"):
        assert each in listed
    assert page.locator("dialog[open] tbody tr").count() >= 30
    page.keyboard.press("Escape")
    until(page, "!document.querySelector('dialog[open]')")


def test_a_token_is_found_by_its_text(page):
    page.keyboard.press("/")
    page.locator("dialog[open] input").wait_for()
    page.keyboard.type("Jerry")
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('k=2')")


def test_escape_takes_the_selection_back(page):
    page.keyboard.press("Escape")
    until(page, "!location.hash.includes('q=')")


def test_every_control_can_be_reached_by_tab(page):
    wanted = page.locator("button:visible, select:visible, input:visible").count()
    reached = set()
    for _ in range(wanted * 2 + 60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(() => { const all = [...document.querySelectorAll('*')]; return all.indexOf(document.activeElement) })()"
            )
        )
    assert len(reached) >= wanted * 0.6, "groups with a roving focus count once"
