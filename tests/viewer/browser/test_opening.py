"""The page opens wherever it is put, asks for nothing, and says what it shows."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from regard.viewer.html import render
from regard.viewer.html.server import Server
from regard.viewer.html.view import View, framed

from ..invented import forecast, large, picture, sound, translation
from .conftest import until


@pytest.mark.parametrize("make", [translation, picture, forecast, sound, lambda: large(300, 200)])
def test_every_kind_of_trace_opens_from_a_file(watched, make):
    page = watched.show(render.html([make()]), fragment="#v=heatmap")
    assert page.locator("canvas.heat-matrix").count() == 1
    assert page.locator("section").count() >= 5
    assert page.title().endswith("- regard")


def test_two_traces_open_side_by_side(watched):
    page = watched.show(render.html([translation(), translation(5, name="other")]))
    assert page.get_by_role("button", name=re.compile("A − B|A - B")).count() == 1


def test_a_served_page_fetches_tiles_and_nothing_else(watched):
    with Server([large(700, 600)]) as server:
        page = watched.show(server.url, tiles=True)
        until(page, "window.probe && window.probe(100, 500) && window.probe(100, 500).byte === 255")


def test_a_sandbox_holds_the_page(watched):
    outer = f'<!doctype html><html data-ready lang="en"><title>t</title><body>{framed(render.html([translation()]), None)}'
    page = watched.show(outer)
    frame = page.frames[1]
    until(frame, "document.documentElement.hasAttribute('data-ready')")
    frame.locator("canvas.heat-matrix").press("ArrowDown")
    until(frame, "location.hash.includes('q=0')")
    assert "汤姆" in frame.locator("[role=status]").first.inner_text()


class Frames(HTMLParser):
    """The pages in a page's frames, and its pictures."""

    def __init__(self, text):
        super().__init__()
        self.pages, self.pictures = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.pages += [value for name, value in attributes if (tag, name) == ("iframe", "srcdoc")]
        self.pictures += [value for name, value in attributes if (tag, name) == ("img", "src")]


def test_a_notebook_keeps_the_page_and_one_that_is_not_trusted_the_picture(watched):
    from nbconvert import HTMLExporter
    from nbformat.v4 import new_code_cell, new_notebook, new_output
    from traitlets.config import Config

    bundle = View([translation()])._repr_mimebundle_()
    cell = new_code_cell("regard.view(trace)", outputs=[new_output("display_data", data=bundle)])
    notebook = new_notebook(cells=[cell], metadata={"language_info": {"name": "python", "pygments_lexer": "python"}})
    [page] = Frames(HTMLExporter().from_notebook_node(notebook)[0]).pages
    watched.show(page)
    assert Frames(HTMLExporter(sanitize_html=True).from_notebook_node(notebook)[0]).pages == []
    cautious = HTMLExporter(config=Config({"NbConvertBase": {"display_data_priority": ["image/png", "text/plain"]}}))
    pictured = Frames(cautious.from_notebook_node(notebook)[0])
    assert pictured.pages == []
    assert any(each.startswith("data:image/png;base64,") for each in pictured.pictures)


@pytest.mark.parametrize(("light", "dark"), [("true", False), ("false", True)])
def test_a_page_in_a_notebook_has_the_notebook_s_theme_whatever_the_system_s_is(watched, light, dark):
    shown = framed(render.html([translation()]), None)
    page = watched.blank(color_scheme="null")  # playwright's own choice would be every frame's
    page.set_content(f'<body data-jp-theme-light="{light}">{shown}')
    frame = next(each for each in page.frames if each.parent_frame)
    frame.wait_for_selector("html[data-ready]", timeout=20_000)
    assert frame.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is dark


def test_the_language_is_the_reader_s_and_can_be_chosen(watched):
    english, chinese = (watched.show(render.html([translation()]), locale=locale) for locale in ("en-GB", "zh-CN"))
    assert "Network" in english.inner_text("body")
    assert "网络" in chinese.inner_text("body")
    assert chinese.locator("html").get_attribute("lang").startswith("zh")
    forced = watched.show(render.html([translation()], language="zh"))
    assert "网络" in forced.inner_text("body")


def test_the_address_holds_the_selection_and_brings_it_back(watched):
    page = watched.show(render.html([translation()]))
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "[", ".", "s"):
        page.keyboard.press(key)
    until(page, "location.hash.includes('q=') && location.hash.includes('h=0')")
    address, spoken = page.url, page.locator("[role=status]").first.inner_text()
    again = watched.show(render.html([translation()]), fragment=address[address.index("#") :])
    assert again.locator("[role=status]").first.inner_text() == spoken
    opened = watched.show(render.html([translation()], state="#a=decoder.layers.0.cross&q=2&k=1"))
    assert "杰瑞" in opened.locator("[role=status]").first.inner_text()


def test_an_address_that_makes_no_sense_does_no_harm(watched):
    for strange in (
        "#a=%00&h=99999&q=-1&win=9,9,1,1&s=nothing&c=b&x=7&f=99",
        "#%%%",
        "#" + "a" * 5000,
        "#q=1e9&k=NaN&top=-4&p=%3Cscript%3E",
    ):
        page = watched.show(render.html([translation()]), fragment=strange)
        assert page.locator("canvas.heat-matrix").count() == 1
        page.keyboard.press("ArrowDown")


def test_a_page_whose_payload_is_broken_says_so_in_words(watched):
    whole = render.html([translation()])
    page = watched.blank()
    file = watched.folder / "broken.html"
    file.write_text(whole.replace('"format":"attn-page"', '"format":"else"'), encoding="utf-8")
    page.goto(file.as_uri())
    until(page, "document.body.innerText.includes('cannot show a payload')")


def test_the_command_writes_a_page_that_opens(watched, tmp_path):
    path = tmp_path / "t.attn.safetensors"
    translation().save(path)
    command = [sys.executable, "-m", "regard", "view", str(path), "--html", str(tmp_path / "页.html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    page = watched.show(tmp_path / "页.html")
    assert "transformer" in page.inner_text("header")
