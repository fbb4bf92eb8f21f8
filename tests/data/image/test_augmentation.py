import pytest

from regard.data.image.augment import Compose
from regard.data.image.augment.affine import Affine
from regard.data.image.augment.flip import Flip
from regard.data.image.augment.light import Light
from regard.data.image.augmentation import KINDS, parse_augmentation


def test_words_are_changes_in_their_order():
    assert parse_augmentation("none") is None
    assert parse_augmentation("light+affine") == Compose((Light(), Affine()))
    assert all(parse_augmentation(kind) is not None for kind in KINDS)


def test_a_word_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"data\.augment needs to be none, or one or more of affine, .* got 'affine\+blur'"):
        parse_augmentation("affine+blur")


def test_a_word_takes_numbers_behind_colons():
    assert parse_augmentation("affine:scale=0.3:turn=0+flip:down=0.5") == Compose(
        (Affine(scale=0.3, turn=0.0), Flip(down=0.5))
    )
    assert parse_augmentation("crop:upscale=1").upscale is True


@pytest.mark.parametrize("setting", ["strength=1", "scale", "scale=much", "=1"])
def test_a_number_that_a_change_does_not_have_or_that_is_none_is_refused(setting):
    with pytest.raises(ValueError, match=rf"affine takes NAME=NUMBER behind a colon, of scale, .* got '{setting}'"):
        parse_augmentation(f"light+affine:shift=0.1:{setting}")


def test_a_number_out_of_its_bounds_is_refused_by_the_change():
    with pytest.raises(ValueError, match=r"the probability of a flip needs to be from 0 to 1, got 2\.0"):
        parse_augmentation("flip:down=2")
