"""Nothing here needs the disk to be synced, which may take long where others write too."""

import os

import pytest


@pytest.fixture(autouse=True, scope="module")
def _unsynced():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield
