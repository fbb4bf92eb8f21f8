"""What the viewer's pages are tested with beside the browser of tests/chromium.py."""

import tempfile
from pathlib import Path

import pytest

from ...chromium import Watched, until

__all__ = ["until"]


@pytest.fixture(scope="session")
def node_modules():
    """What the viewer is built and tested with, fetched on first use."""
    from ..node import modules

    return modules()


@pytest.fixture(scope="module")
def pages(browser):
    """Pages that a whole module shares: each is opened once, and its state is set by its address."""
    with tempfile.TemporaryDirectory() as folder:
        watched = Watched(browser, Path(folder))
        yield watched
        watched.close()
        assert watched.faults == []


def set_state(page, fragment: str) -> None:
    """Give a page that is open another state, as somebody does who follows a link."""
    page.wait_for_timeout(180)  # the page writes its own state a moment after it changed
    page.evaluate("fragment => { location.hash = '#' ; location.hash = fragment }", fragment)
    page.wait_for_timeout(60)
