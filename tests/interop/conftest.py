"""Engines are exported by the sources at hand: none is taken from the user's cache, where an earlier version may have left it."""

import shutil

import pytest

from regard.user_cache import cache_folder


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    (cache / "regard").mkdir(mode=0o700)
    shutil.copytree(cache_folder("compiled"), cache / "regard" / "compiled")  # which is named by its sources
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        yield
