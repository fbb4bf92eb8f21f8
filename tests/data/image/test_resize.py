import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.image.resize import fit, fitted, stretch

SIDES = st.integers(1, 400)


@given(SIDES, SIDES, SIDES, SIDES, st.booleans())
def test_what_is_fitted_is_in_the_box_and_keeps_its_proportions(height, width, high, wide, upscale):
    found = fitted(height, width, (high, wide), upscale=upscale)
    assert 1 <= found[0] <= high or found == (height, width)
    assert 1 <= found[1] <= wide or found == (height, width)
    ratio = min(high / height, wide / width)
    if ratio >= 1 and not upscale:
        assert found == (height, width)
    else:
        assert abs(found[0] - height * ratio) <= 1
        assert abs(found[1] - width * ratio) <= 1
        assert found[0] == high or found[1] == wide


def test_a_pixel_is_the_average_of_those_it_stands_for():
    picture = torch.tensor([[[0.0, 1.0] * 32] * 64])
    found = fit(picture, (8, 8))
    assert found.shape == (1, 8, 8)
    torch.testing.assert_close(found, torch.full_like(found, 0.5), atol=0.05, rtol=0)


def test_nothing_is_made_larger_unless_that_is_asked_for():
    picture = torch.rand(3, 4, 6)
    assert fit(picture, (100, 100)) is picture
    assert fit(picture, (8, 100), upscale=True).shape == (3, 8, 12)


def test_all_frames_of_a_clip_are_resized():
    clip = torch.rand(5, 3, 8, 12)
    found = fit(clip, (4, 100))
    assert found.shape == (5, 3, 4, 6)
    torch.testing.assert_close(found[3], fit(clip[3], (4, 100)))


def test_a_box_without_room_is_refused():
    with pytest.raises(ValueError, match=r"a height and a width of 1 or more, got \(3, 4\) and \(0, 9\)"):
        fitted(3, 4, (0, 9))


def test_what_is_stretched_fills_the_box():
    picture = torch.tensor([[[0.0, 0.0, 1.0, 1.0]]])
    assert stretch(picture, (2, 2)).shape == (1, 2, 2)
    torch.testing.assert_close(stretch(picture, (3, 4)), picture.expand(1, 3, 4))


def test_bytes_are_resized_as_their_floats_are(monkeypatch):
    picture = torch.randint(0, 256, (2, 3, 40, 50), dtype=torch.uint8)
    expected = fit(picture.float() / 255, (12, 12))
    assert torch.equal(fit(picture, (12, 12)), expected)
    assert torch.equal(stretch(picture, (40, 50)), picture.float() / 255)
    monkeypatch.setattr("regard.data.image.resize.TOGETHER", 100)  # each channel by itself
    assert torch.equal(fit(picture, (12, 12)), expected)
