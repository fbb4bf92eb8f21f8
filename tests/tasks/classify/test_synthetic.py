import torch

from regard.data.image.synthetic.boxes import Boxed, draw
from regard.data.image.synthetic.scene import Scene, Thing
from regard.data.image.synthetic.shapes import SHAPES
from regard.tasks.classify.synthetic import Drawn

SCENE = Scene(
    (Thing("square", "red", 64, 64, 30), Thing("star", "blue", 192, 192, 30), Thing("square", "black", 192, 64, 30))
)
BOXED = Boxed(SCENE, [SHAPES.index(each.shape) for each in SCENE.things], SCENE.boxes(), "drawn:1")


def test_each_shape_is_named_once():
    assert Drawn(BOXED).record == ("drawn:1", "square, star", "drawn:1", ())
    assert Drawn(BOXED, language="chinese").record.target == "正方形, 五角星"


def test_it_is_drawn_at_its_size_and_the_same_each_time():
    drawn = Drawn(draw(10)[0][0], 32)
    assert drawn().shape == (3, 32, 32)
    assert torch.equal(drawn(), drawn())


def test_the_region_of_a_shape_has_all_things_of_that_shape():
    region = Drawn(BOXED, 32).region("square")
    assert region[8, 8]
    assert region[8, 24]
    assert not region[24, 24]
    assert Drawn(BOXED, 32, "chinese").region("五角星")[24, 24]
