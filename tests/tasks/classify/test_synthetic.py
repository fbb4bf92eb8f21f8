import torch

from regard.data.image.synthetic.boxes import Boxed, draw
from regard.data.image.synthetic.motion import Clip
from regard.data.image.synthetic.scene import Scene, Thing
from regard.data.image.synthetic.shapes import SHAPES
from regard.tasks.classify.synthetic import SyntheticClip, SyntheticScene

SCENE = Scene(
    (Thing("square", "red", 64, 64, 30), Thing("star", "blue", 192, 192, 30), Thing("square", "black", 192, 64, 30))
)
BOXED = Boxed(SCENE, [SHAPES.index(each.shape) for each in SCENE.things], SCENE.boxes(), "drawn:1")


def test_each_shape_is_named_once():
    assert SyntheticScene(BOXED).record == ("drawn:1", "square, star", "drawn:1", ())
    assert SyntheticScene(BOXED, language="chinese").record.target == "正方形, 五角星"


def test_it_is_drawn_at_its_size_and_the_same_each_time():
    drawn = SyntheticScene(draw(10)[0][0], 32)
    assert drawn().shape == (3, 32, 32)
    assert torch.equal(drawn(), drawn())


def test_the_region_of_a_shape_has_all_things_of_that_shape():
    region = SyntheticScene(BOXED, 32).region("square")
    assert region[8, 8]
    assert region[8, 24]
    assert not region[24, 24]
    assert SyntheticScene(BOXED, 32, "chinese").region("五角星")[24, 24]


CLIP = Clip(Thing("star", "red", 128, 128, 30), "left", 2, 8, "drawn:7")


def test_what_happens_is_the_target_in_either_language():
    assert SyntheticClip(CLIP).record == ("drawn:7", "left", "drawn:7", ())
    assert SyntheticClip(CLIP, language="chinese").record.target == "向左"


def test_a_clip_has_its_frames_and_they_move_when_it_says_so():
    frames = SyntheticClip(CLIP, 32)()
    assert frames.shape == (8, 3, 32, 32)
    changed = [number for number in range(1, 8) if not torch.equal(frames[number], frames[number - 1])]
    assert changed == list(CLIP.moving)
