import torch

from regard.data.image.axis import image_axis


def test_a_grey_picture_is_shown_in_three_channels_and_filled_up_to_whole_places():
    axis = image_axis(torch.zeros(1, 5, 9, dtype=torch.uint8), 4)
    assert axis.grid == (2, 3)
    assert axis.size == (8, 12)
    assert axis.pixels.shape == (8, 12, 3)
    assert not axis.pixels[:5, :9].any()
    assert (axis.pixels[5:] == 255).all()
    assert (axis.pixels[:, 9:] == 255).all()
    assert len(axis) == 6


def test_places_for_the_whole_come_first():
    axis = image_axis(torch.zeros(3, 4, 8, dtype=torch.uint8), 4, 1)
    assert axis.labels == ["whole", "1,1", "1,2"]
