"""What the viewer's pages are tested with beside the browser of tests/chromium.py."""

import pytest

from ...chromium import until

__all__ = ["until"]


@pytest.fixture(scope="session")
def node_modules():
    """What the viewer is built and tested with, fetched on first use."""
    from ..node import modules

    return modules()
