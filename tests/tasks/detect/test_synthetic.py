import torch

from regard.data.image.synthetic.boxes import Boxed
from regard.data.image.synthetic.scene import Scene, Thing
from regard.tasks.detect.synthetic import SyntheticScene

SCENE = Scene((Thing("circle", "red", 64, 128, 32), Thing("star", "blue", 200, 200, 16)))
BOXED = Boxed(SCENE, [0, 3], SCENE.boxes(), "drawn:5")


def test_a_scene_is_drawn_and_its_things_have_boxes_in_pixels():
    drawn = SyntheticScene(BOXED, 64)
    assert drawn().shape == (3, 64, 64)
    record, labels, boxes = drawn.annotated
    assert (record.source, record.where, labels) == ("drawn:5", "drawn:5", ("circle", "star"))
    assert boxes[0] == (8.0, 24.0, 24.0, 40.0)


def test_the_box_has_all_of_the_thing_in_it_and_no_more():
    drawn = SyntheticScene(BOXED._replace(scene=Scene(SCENE.things[:1])), 128)
    coloured = (drawn() < 0.99).any(0)
    rows, columns = coloured.any(1).nonzero(), coloured.any(0).nonzero()
    left, top, right, bottom = drawn.annotated.boxes[0]
    assert abs(int(rows.min()) - top) <= 1
    assert abs(int(rows.max()) + 1 - bottom) <= 1
    assert abs(int(columns.min()) - left) <= 1
    assert abs(int(columns.max()) + 1 - right) <= 1


def test_shapes_have_chinese_names():
    assert SyntheticScene(BOXED, 64, "chinese").annotated.labels == ("圆", "五角星")
    assert torch.equal(SyntheticScene(BOXED, 64, "chinese")(), SyntheticScene(BOXED, 64)())
