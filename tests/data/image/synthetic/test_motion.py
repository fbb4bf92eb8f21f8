from collections import Counter

import pytest
import torch

from regard.data.image.synthetic.motion import MOTION_WORDS, MOTIONS, STEPS, Clip, draw
from regard.data.image.synthetic.scene import Thing
from regard.data.image.synthetic.shapes import SHAPES

TRAIN, VALID = draw(400)


def clip(motion: str, shape: str = "square") -> Clip:
    return Clip(Thing(shape, "red", 128, 128, 30), motion, first=2, frames=8)


@pytest.mark.parametrize("motion", MOTIONS)
def test_a_thing_rests_moves_and_rests_again(motion):
    frames = clip(motion).picture(64)
    assert frames.shape == (8, 3, 64, 64)
    changed = tuple(number for number in range(1, 8) if not torch.equal(frames[number], frames[number - 1]))
    assert changed == clip(motion).moving == (2, 3, 4, 5)


@pytest.mark.parametrize(
    ("motion", "difference"),
    [
        ("left", (-56, 0, 0, 0)),
        ("right", (56, 0, 0, 0)),
        ("up", (0, -56, 0, 0)),
        ("down", (0, 56, 0, 0)),
        ("grows", (0, 0, 20, 0)),
        ("turns", (0, 0, 0, 68)),
    ],
)
def test_it_does_what_its_label_says(motion, difference):
    first, last = clip(motion).at(0), clip(motion).at(7)
    assert (last.x - first.x, last.y - first.y, last.radius - first.radius, last.turn - first.turn) == difference
    assert MOTIONS[clip(motion).label] == motion
    assert motion in MOTION_WORDS


def test_no_thing_leaves_the_picture():
    for each in TRAIN + VALID:
        for frame in (0, each.frames - 1):
            left, top, right, bottom = each.at(frame).edges
            assert min(left, top) >= 0
            assert max(right, bottom) <= 256
        assert each.moving[0] >= 1
        assert each.moving[-1] < each.frames


def test_the_shape_tells_nothing_of_the_motion():
    shapes = {motion: {each.thing.shape for each in TRAIN if each.motion == motion} for motion in MOTIONS}
    assert all(each == set(SHAPES) - {"circle", "ring"} for each in shapes.values())  # those could not be seen to turn


def test_motions_are_equally_likely_and_begin_at_any_time():
    assert min(Counter(each.motion for each in TRAIN).values()) > 40
    assert {each.first for each in TRAIN} == {1, 2, 3, 4}


def test_no_clip_is_in_both_parts_and_none_twice():
    assert (len(TRAIN), len(VALID)) == (360, 40)
    assert len({each._replace(where="") for each in TRAIN + VALID}) == 400


def test_a_seed_gives_the_same_clips_and_another_gives_others():
    assert draw(20, seed=1) == draw(20, seed=1)
    assert draw(20, seed=1) != draw(20, seed=2)


def test_a_clip_needs_frames_to_rest_in():
    assert draw(3, frames=STEPS + 1)[0][0].frames == STEPS + 1
    with pytest.raises(ValueError, match="more than 4 frames, got 4"):
        draw(3, frames=4)
