"""Scenes with a label and a box for each thing."""

from random import Random
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.data.image.synthetic.scene import COLOURS, Scene, Thing, placed
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.synthetic.split import split

RADII = (14, 40)
"""The smallest and the largest thing."""


class Boxed(NamedTuple):
    """A scene and, for each of its things, the number of its shape in SHAPES and its box."""

    scene: Scene
    labels: list[int]
    boxes: Float[Tensor, "things 4"]
    where: str

    def picture(self, size: int = 64) -> Float[Tensor, "3 height width"]:
        """The picture of the scene."""
        return self.scene.picture(size)


def draw(samples: int, seed: int = 0, most: int = 6, radii: tuple[int, int] = RADII) -> tuple[list[Boxed], list[Boxed]]:
    """Scenes of one to `most` things, to train on and to validate with; no scene is there twice."""
    if most < 1:
        raise ValueError(f"a scene needs 1 thing or more, got most={most}")
    chance = Random(seed)
    scenes: dict[Scene, None] = {}
    while len(scenes) < samples:
        scenes.setdefault(_scene(chance, chance.randint(1, most), radii))
    return split(
        [_boxed(scene, f"drawn:{number}") for number, scene in enumerate(scenes, start=1)], lambda sample: sample.scene
    )


def _scene(chance: Random, count: int, radii: tuple[int, int]) -> Scene:
    """Things wherever there is room: the first always has some."""
    things: list[Thing] = []
    for _ in range(count):
        radius = chance.randint(*radii)
        place = placed(chance, radius, things)
        if place is not None:
            things.append(Thing(chance.choice(SHAPES), chance.choice(tuple(COLOURS)), *place, radius))
    return Scene(tuple(things))


def _boxed(scene: Scene, where: str) -> Boxed:
    return Boxed(scene, [SHAPES.index(thing.shape) for thing in scene.things], scene.boxes(), where)
