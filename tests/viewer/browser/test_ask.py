"""A served page takes a new sentence or picture and shows what the model does with it."""

import numpy as np
import pytest

from regard.viewer.html import render
from regard.viewer.html.server import Model, Server
from regard.viewer.trace import Trace

from ..invented import picture, translation
from .conftest import until


def record(text: str) -> list[Trace]:
    if text == "zebra":
        raise ValueError("the model has no token of 'zebra' in its vocabulary")
    words = text.split()
    return [Trace.from_arrays(np.eye(len(words), dtype=np.float32), query=words, key=words[::-1])]


@pytest.fixture
def page(browser, watched):
    with Server([translation()], model=Model("text", record)) as server:
        page = watched.blank()
        page.goto(server.url + "#q=3&k=1&s=linear")
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        yield page
        assert all(url.startswith(server.url) for url in asked), asked


def test_a_new_sentence_is_shown_with_the_settings_that_were_chosen_and_no_place_of_the_old_one(page):
    page.get_by_label("Another sentence").fill("dogs chase cats")
    page.keyboard.press("Enter")
    page.locator(".headline", has_text="dogs chase cats").wait_for()
    until(page, "window.probe && window.probe(0, 2)?.byte === 0 && window.probe(0, 0)?.byte === 255")
    assert "s=linear" in page.url
    assert "q=3" not in page.url


def test_what_the_model_refuses_is_said_and_the_page_stays(page):
    page.get_by_label("Another sentence").fill("zebra")
    page.get_by_role("button", name="Run the model").click()
    until(page, "document.querySelector('.ask-told').textContent.includes(\"no token of 'zebra'\")")
    assert "Tom chase Jerry" in page.locator(".headline").inner_text()


def test_a_new_picture_is_sent_and_shown(watched, tmp_path):
    file = tmp_path / "new.png"
    file.write_bytes(b"\x89PNG and more")

    def look(content: bytes) -> list[Trace]:
        assert content == file.read_bytes()
        words = ["new", "picture"]
        return [Trace.from_arrays(np.eye(2, dtype=np.float32), query=words, key=words)]

    with Server([picture()], language="zh", model=Model("picture", look)) as server:
        page = watched.blank()
        page.goto(server.url)
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        page.get_by_label("另一幅图片").set_input_files(file)
        page.get_by_role("button", name="运行模型").click()
        page.locator(".headline", has_text="new picture").wait_for()


def test_a_page_in_a_file_has_no_field_for_it(watched):
    page = watched.show(render.html([translation()]))
    assert page.locator(".ask").count() == 0
