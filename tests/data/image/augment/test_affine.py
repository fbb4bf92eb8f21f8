import numpy as np
import pytest
import torch

from regard.data.image.augment.affine import Affine


class Fixed(np.random.Generator):
    """A generator that gives what it is told to."""

    def __init__(self, *numbers):
        super().__init__(np.random.Philox(0))
        self.numbers = np.array(numbers, float)

    def uniform(self, low, high, size):
        return self.numbers


ORDER = ("scale", "stretch", "across", "down", "turn", "shear")


def draw(change: Affine, picture, boxes=None, **numbers):
    """The change with the numbers from -1 to 1 that are given, and 0 for the others."""
    return change(picture, Fixed(*(numbers.get(name, 0) for name in ORDER)), boxes)


def test_nothing_drawn_changes_nothing():
    picture, boxes = torch.rand(3, 8, 13), torch.tensor([[0.4, 0.6, 0.2, 0.1]])
    found = draw(Affine(), picture, boxes)
    torch.testing.assert_close(found.picture, picture, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.boxes, boxes)


def test_a_shift_moves_pixels_and_boxes_alike():
    picture, boxes = torch.rand(1, 10, 20), torch.tensor([[0.5, 0.5, 0.2, 0.2]])
    found = draw(Affine(shift=0.2, fill=0.0), picture, boxes, across=1, down=-1)
    torch.testing.assert_close(found.picture[:, :8, 4:], picture[:, 2:, :-4], atol=1e-5, rtol=0)
    assert found.picture[:, 8:].abs().max() < 1e-5
    torch.testing.assert_close(found.boxes, torch.tensor([[0.7, 0.3, 0.2, 0.2]]))


def test_a_quarter_turn_goes_clockwise():
    picture = torch.rand(1, 9, 9)
    found = draw(Affine(turn=90.0), picture, torch.tensor([[0.2, 0.5, 0.2, 0.4]]), turn=1)
    torch.testing.assert_close(found.picture, picture.rot90(-1, (1, 2)), atol=1e-4, rtol=0)
    torch.testing.assert_close(found.boxes, torch.tensor([[0.5, 0.2, 0.4, 0.2]]))


@pytest.mark.parametrize(
    "numbers", [{"scale": 1}, {"scale": -1}, {"stretch": 1}, {"turn": 1}, {"shear": -1}, dict.fromkeys(ORDER, 0.7)], ids=str
)
def test_a_box_stays_around_its_thing(numbers):
    picture = torch.zeros(1, 80, 120)
    picture[:, 30:50, 60:90] = 1
    boxes = torch.tensor([[75 / 120, 40 / 80, 30 / 120, 20 / 80]])
    found = draw(Affine(scale=0.3, stretch=0.2, shift=0.1, turn=20.0, shear=15.0, fill=0.0), picture, boxes, **numbers)
    rows, columns = torch.nonzero(found.picture[0] > 0.5, as_tuple=True)
    edges = torch.tensor([columns.min() / 120, rows.min() / 80, (columns.max() + 1) / 120, (rows.max() + 1) / 80])
    x, y, width, height = found.boxes[0]
    torch.testing.assert_close(
        torch.stack((x - width / 2, y - height / 2, x + width / 2, y + height / 2)), edges, atol=0.02, rtol=0
    )


def test_what_comes_in_is_the_edge_or_a_filling():
    picture = torch.full((1, 10, 10), 0.25)
    change = {"shift": 0.5}
    assert draw(Affine(**change), picture, across=1).picture.unique().tolist() == pytest.approx([0.25])
    filled = draw(Affine(**change, fill=1.0), picture, across=1).picture
    assert filled[0, 0].tolist() == pytest.approx([1.0] * 5 + [0.25] * 5, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": -1.0}, "a scale of 0 or more, got -1.0"),
        ({"shift": -0.1}, "a shift of 0 or more"),
        ({"turn": 200.0}, "up to 180 degrees and a shear up to 80, got 200.0 and 5.0"),
        ({"shear": 90.0}, "got 5.0 and 90.0"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Affine(**settings)


def test_pictures_in_one_go_are_each_what_they_are_alone():
    pictures, numbers = torch.rand(3, 1, 9, 12), np.random.default_rng(0).uniform(-1, 1, (3, 6))
    change = Affine(stretch=0.2, fill=0.1)
    together = change.together(pictures, Fixed(*numbers))
    for picture, found, row in zip(pictures, together, numbers, strict=True):
        torch.testing.assert_close(found, change(picture, Fixed(*row)).picture)
