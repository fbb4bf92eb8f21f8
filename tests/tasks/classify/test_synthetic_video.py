import torch

from regard.data.image.synthetic.motion import Clip
from regard.data.image.synthetic.scene import Thing
from regard.tasks.classify.synthetic_video import Moving

CLIP = Clip(Thing("star", "red", 128, 128, 30), "left", 2, 8, "drawn:7")


def test_what_happens_is_the_target_in_either_language():
    assert Moving(CLIP).record == ("drawn:7", "left", "drawn:7", ())
    assert Moving(CLIP, language="chinese").record.target == "向左"


def test_a_clip_has_its_frames_and_they_move_when_it_says_so():
    frames = Moving(CLIP, 32)()
    assert frames.shape == (8, 3, 32, 32)
    changed = [number for number in range(1, 8) if not torch.equal(frames[number], frames[number - 1])]
    assert changed == list(CLIP.moving)
