"""Pages opened in a real browser. A page may ask for nothing but itself, and may not fail in silence.

Every test that opens one fails on any other request, any error in the console and any error that nobody caught.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MISSING = "the page is not tested: no chromium on the path; it is Debian's package chromium"


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests of a process."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield running
        running.close()


class Watched:
    """Opens pages, and at the end tells what they did that they may not."""

    def __init__(self, browser, folder: Path):
        self.browser, self.folder = browser, folder
        self.contexts, self.faults = [], []

    def show(self, content: str | Path, *, fragment: str = "", tiles: bool = False, **options):
        """Open HTML, a file or an address, and wait until the page has drawn itself."""
        page = self.blank(**options)
        if isinstance(content, str) and content.startswith("http://127.0.0.1"):
            address = content
        else:
            file = content if isinstance(content, Path) else self.folder / f"page{len(self.contexts)}.html"
            if isinstance(content, str):
                file.write_text(content, encoding="utf-8", errors="surrogatepass")
            address = file.as_uri()
        self.watch(page, address, tiles)
        page.goto(address + fragment)
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return page

    def blank(self, **options):
        """A page of its own, with nothing in it."""
        given = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB"} | options
        context = self.browser.new_context(**given)
        self.contexts.append(context)
        return context.new_page()

    def watch(self, page, address: str, tiles: bool = False) -> None:
        """Note whatever the page does that it may not."""

        def asked(request) -> None:
            inside = request.url.startswith(("blob:", "data:"))
            tile = tiles and request.url.startswith(address.split("#")[0] + "tile?")
            if not inside and not tile and request.url.split("#")[0] != address.split("#")[0]:
                self.faults.append(f"asked for {request.url}")

        page.on("request", asked)
        page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        page.on("console", lambda said: self._heard(said.type, said.text))

    def _heard(self, kind: str, text: str) -> None:
        """Errors and warnings are faults, but for the browser's advice to those who read pixels back, as these tests do."""
        if kind in ("error", "warning") and "willReadFrequently" not in text:
            self.faults.append(f"said: {text}")

    def close(self) -> None:
        for context in self.contexts:
            context.close()


def until(page, question: str, given: object = None, seconds: float = 8):
    """Ask the page until it says yes. Playwright's own waiting evaluates text, which the page's policy forbids."""
    end = time.monotonic() + seconds
    while not (answer := page.evaluate(question, given)):
        assert time.monotonic() < end, f"never became true: {question}"
        page.wait_for_timeout(20)
    return answer


@pytest.fixture
def watched(browser):
    with tempfile.TemporaryDirectory() as folder:
        opened = Watched(browser, Path(folder))
        yield opened
        opened.close()
        assert opened.faults == [], opened.faults
