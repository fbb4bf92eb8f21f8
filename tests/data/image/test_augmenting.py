import pytest

from regard.data.image.augment import Several
from regard.data.image.augment.affine import Affine
from regard.data.image.augment.light import Light
from regard.data.image.augmenting import KINDS, named


def test_words_are_changes_in_their_order():
    assert named("none") is None
    assert named("light+affine") == Several((Light(), Affine()))
    assert all(named(kind) is not None for kind in KINDS)


def test_a_word_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"data\.augment needs to be none, or one or more of affine, .* got 'affine\+blur'"):
        named("affine+blur")
