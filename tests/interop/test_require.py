import pytest

from regard.errors import RefusedError
from regard.interop.require import needed


def test_what_is_there_is_not_spoken_of():
    needed("torch", "any")


def test_what_is_missing_comes_with_the_way_to_get_it():
    with pytest.raises(
        RefusedError, match=r"this needs no_such_library, which is not installed: pip install 'regard\[it\]'"
    ):
        needed("no_such_library", "it")
