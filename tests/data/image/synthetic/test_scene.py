from random import Random

import pytest
import torch

from regard.data.image.synthetic.scene import COLOURS, MARGIN, SIDE, Scene, Thing, placed, relations
from regard.data.image.synthetic.shapes import SHAPES


def colour(name: str) -> torch.Tensor:
    return torch.tensor(COLOURS[name])


def test_a_thing_has_its_colour_and_the_rest_is_white():
    picture = Scene((Thing("circle", "red", 64, 128, 40),)).picture(64)
    assert (picture.shape, picture.dtype) == ((3, 64, 64), torch.float32)
    torch.testing.assert_close(picture[:, 32, 16], colour("red"))
    assert picture[:, 32, 60].tolist() == [1, 1, 1]


def test_edges_are_smooth_and_cover_the_right_area():
    for size in (16, 64, 200):
        picture = Scene((Thing("circle", "black", 130, 125, 60),)).picture(size)
        covered = float((1 - picture[0]).sum() / (1 - colour("black")[0])) / size**2
        assert covered == pytest.approx(3.14159 * (60 / 256) ** 2, rel=0.02)
    assert picture.unique().numel() > 20


@pytest.mark.parametrize("shape", SHAPES)
def test_a_box_is_tight_around_its_thing(shape):
    scene = Scene((Thing(shape, "blue", 101, 140, 50, 15),))
    rows, columns = torch.nonzero(scene.picture(256)[0] < 0.6, as_tuple=True)
    x, y, width, height = (scene.boxes()[0] * 256).tolist()
    edges = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
    assert edges == pytest.approx(
        [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1], abs=2.5
    )


def test_no_things_have_no_boxes():
    assert Scene(()).boxes().shape == (0, 4)
    assert Scene(()).picture(3).unique().tolist() == [1]


def test_what_comes_later_lies_above_and_what_leaves_the_picture_is_cut():
    scene = Scene(
        (Thing("square", "red", 128, 128, 60), Thing("square", "green", 128, 128, 30), Thing("circle", "blue", 0, 300, 60))
    )
    picture = scene.picture(64)
    torch.testing.assert_close(picture[:, 32, 32], colour("green"))
    torch.testing.assert_close(picture[:, 32, 23], colour("red"))
    torch.testing.assert_close(picture[:, 63, 0], colour("blue"))
    assert Scene((Thing("circle", "blue", -200, 900, 60),)).picture(16).unique().tolist() == [1]


def test_a_region_lights_up_the_cells_that_a_thing_touches():
    scene = Scene((Thing("square", "red", 32, 32, 20), Thing("square", "red", 224, 128, 40)))
    assert scene.region([0], 4, 4).int().tolist() == [[1, 0, 0, 0], [0] * 4, [0] * 4, [0] * 4]
    assert scene.region([1], 4, 4).int().tolist() == [[0] * 4, [0, 0, 0, 1], [0, 0, 0, 1], [0] * 4]
    assert scene.region([0, 1], 2, 2).int().tolist() == [[1, 1], [0, 1]]
    assert scene.region([], 2, 2).sum() == 0
    outside = Scene((Thing("square", "red", 0, 64, 20), Thing("square", "red", -90, 64, 20)))
    assert outside.region([0], 4, 4).int().tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0] * 4, [0] * 4]
    assert outside.region([1], 4, 4).sum() == 0


def test_things_find_a_place_with_room_around_them():
    chance = Random(0)
    for _ in range(50):
        things: list[Thing] = []
        for _ in range(5):
            found = placed(chance, 30, things, (20, 0, 256, 200))
            if found is not None:
                things.append(Thing("circle", "red", *found, 30))
        for number, one in enumerate(things):
            left, top, right, bottom = one.edges
            assert left >= 20 + MARGIN
            assert top >= MARGIN
            assert right <= SIDE - MARGIN
            assert bottom <= 200 - MARGIN
            for other in things[:number]:
                assert (one.x - other.x) ** 2 + (one.y - other.y) ** 2 >= 64**2


def test_where_there_is_no_room_there_is_no_place():
    assert placed(Random(0), 30, [], (0, 0, 60, 256)) is None
    assert placed(Random(0), 60, [Thing("circle", "red", 128, 128, 100)]) is None


@pytest.mark.parametrize(
    ("first", "second", "ways"),
    [
        ((50, 50), (50, 200), {"above"}),
        ((200, 50), (50, 50), {"right"}),
        ((50, 200), (200, 50), {"left", "below"}),
        ((50, 50), (60, 60), set()),
    ],
)
def test_how_things_lie_to_each_other(first, second, ways):
    one, other = (Thing("circle", "red", *place, 20) for place in (first, second))
    assert relations([one], [other]) == ways


def test_what_is_true_of_one_of_several_is_not_true_of_all():
    left, middle, right = (Thing("circle", "red", x, 100, 10) for x in (20, 100, 180))
    assert relations([left, right], [middle]) == set()
    assert relations([left, middle], [right]) == {"left"}


def test_a_picture_without_pixels_is_refused():
    with pytest.raises(ValueError, match="a side of 1 or more pixels, got 0"):
        Scene(()).picture(0)
