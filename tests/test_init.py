import regard
from regard.attention.score.additive import Additive


def test_stages_and_mechanisms_are_found_by_name():
    assert regard.find("additive") is Additive


def test_it_says_which_version_it_is():
    assert all(part.isdigit() for part in regard.__version__.split(".")[:2])


def test_everything_it_promises_is_there():
    for name in regard.__all__:
        assert hasattr(regard, name)
