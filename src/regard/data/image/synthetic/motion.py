"""Short clips: one thing that rests, moves for a few frames, and rests again. What it does is the label.

How a clip begins tells nothing of what follows, and only some of the frames show it: attention over time has to find them.
"""

from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.image.synthetic.scene import COLOURS, MARGIN, SIDE, Scene, Thing
from regard.data.image.synthetic.shapes import ROUND, SHAPES
from regard.data.image.synthetic.split import split

MOTIONS = ("left", "right", "up", "down", "grows", "turns")
MOTION_WORDS = {"left": "向左", "right": "向右", "up": "向上", "down": "向下", "grows": "变大", "turns": "转动"}

TURNING = tuple(shape for shape in SHAPES if shape not in ROUND)
"""The shapes of all clips: those that can be seen to turn, whatever they do, so that a shape tells nothing of the motion."""

STEPS = 4
"""Number of frames that show a thing further than the frame before."""

STRIDE, GROWTH, TURN = 14, 5, 17
"""Change from frame to frame: 256ths of the side, the same of the radius, degrees."""


class Clip(NamedTuple):
    """A thing at its beginning, what it does, and the first frame that differs from the one before it."""

    thing: Thing
    motion: str
    first: int
    frames: int
    where: str = ""

    @property
    def label(self) -> int:
        """The number of the motion."""
        return MOTIONS.index(self.motion)

    @property
    def moving(self) -> tuple[int, ...]:
        """The frames to look at: those that differ from the one before them."""
        return tuple(range(self.first, self.first + STEPS))

    def at(self, frame: int) -> Thing:
        """The thing in one frame."""
        done = min(max(frame - self.first + 1, 0), STEPS)
        thing = self.thing
        if self.motion == "grows":
            return thing._replace(radius=thing.radius + GROWTH * done)
        if self.motion == "turns":
            return thing._replace(turn=thing.turn + TURN * done)
        across = {"left": -1, "right": 1}.get(self.motion, 0)
        down = {"up": -1, "down": 1}.get(self.motion, 0)
        return thing._replace(x=thing.x + across * STRIDE * done, y=thing.y + down * STRIDE * done)

    def picture(self, size: int = 64) -> Float[Tensor, "frames 3 height width"]:
        """Frames of the clip."""
        return torch.stack([Scene((self.at(frame),)).picture(size) for frame in range(self.frames)])


def draw(samples: int, seed: int = 0, frames: int = 8) -> tuple[list[Clip], list[Clip]]:
    """Clips, to train on and to validate with; none is there twice."""
    if frames <= STEPS:
        raise ValueError(f"a clip needs more than {STEPS} frames, got {frames}")
    chance = Random(seed)
    clips: dict[Clip, None] = {}
    while len(clips) < samples:
        clips.setdefault(_clip(chance, frames))
    return split([clip._replace(where=f"drawn:{number}") for number, clip in enumerate(clips, start=1)], lambda clip: clip)


def _clip(chance: Random, frames: int) -> Clip:
    """A thing that could do any of the motions: far enough from every edge, and not round."""
    motion, shape = chance.choice(MOTIONS), chance.choice(TURNING)
    radius = chance.randint(20, 36)
    room = radius + MARGIN + STEPS * STRIDE
    x, y = chance.randint(room, SIDE - room), chance.randint(room, SIDE - room)
    thing = Thing(shape, chance.choice(tuple(COLOURS)), x, y, radius, chance.randrange(360))
    return Clip(thing, motion, chance.randint(1, frames - STEPS), frames)
