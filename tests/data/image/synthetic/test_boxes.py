import pytest
import torch

from regard.data.image.synthetic.boxes import draw
from regard.data.image.synthetic.shapes import SHAPES

TRAIN, VALID = draw(300)


def test_every_thing_has_its_label_and_its_box_in_the_picture():
    counts = set()
    for example in TRAIN + VALID:
        things = example.scene.things
        assert [SHAPES[label] for label in example.labels] == [thing.shape for thing in things]
        assert torch.equal(example.boxes, example.scene.boxes())
        low, high = example.boxes[:, :2] - example.boxes[:, 2:] / 2, example.boxes[:, :2] + example.boxes[:, 2:] / 2
        assert (low > 0).all()
        assert (high < 1).all()
        counts.add(len(things))
    assert counts == {1, 2, 3, 4, 5, 6}
    assert {label for example in TRAIN for label in example.labels} == set(range(len(SHAPES)))


def test_no_scene_is_in_both_parts_and_none_twice():
    assert (len(TRAIN), len(VALID)) == (270, 30)
    assert len({example.scene for example in TRAIN + VALID}) == 300


def test_a_seed_gives_the_same_scenes_and_another_gives_others():
    assert [example.scene for example in draw(20, seed=3)[0]] == [example.scene for example in draw(20, seed=3)[0]]
    assert [example.scene for example in draw(20, seed=3)[0]] != [example.scene for example in draw(20, seed=4)[0]]
    assert all(len(example.labels) == 1 for example in draw(20, most=1)[0])


def test_an_example_gives_its_picture():
    assert torch.equal(TRAIN[0].picture(32), TRAIN[0].scene.picture(32))


def test_scenes_of_nothing_are_refused():
    with pytest.raises(ValueError, match="a scene needs 1 thing or more, got most=0"):
        draw(20, most=0)
