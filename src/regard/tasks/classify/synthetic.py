"""Synthetic samples: scenes labelled with their shapes, and clips labelled with a motion, rendered on access."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.image.synthetic.boxes import Boxed
from regard.data.image.synthetic.motion import MOTION_WORDS, Clip
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.synthetic.words import SHAPE_WORDS, Language
from regard.data.records import Record

RADII = (24, 44)
"""Smallest and largest radius of an object: distinguishable at 64 pixels a side."""


@dataclass(frozen=True)
class SyntheticScene:
    """Renders a scene at `size` pixels a side, with its shapes as labels."""

    boxed: Boxed
    size: int = 64
    language: Language = "english"

    def __call__(self) -> Float[Tensor, "3 height width"]:
        return self.boxed.picture(self.size)

    @property
    def record(self) -> Record:
        """The shapes as target, and a name for the picture as source."""
        shapes = dict.fromkeys(self.name(label) for label in self.boxed.labels)
        return Record(self.boxed.where, ", ".join(shapes), self.boxed.where)

    def name(self, label: int) -> str:
        """Name of a shape, by its number."""
        return SHAPES[label] if self.language == "english" else SHAPE_WORDS[SHAPES[label]]

    def region(self, name: str) -> Bool[Tensor, "height width"]:
        """Mask of the pixels in the boxes of all objects of a shape, by its name."""
        things = [number for number, label in enumerate(self.boxed.labels) if self.name(label) == name]
        return self.boxed.scene.region(things, self.size, self.size)


@dataclass(frozen=True)
class SyntheticClip:
    """Renders a clip at `size` pixels a side, with its motion as label."""

    clip: Clip
    size: int = 64
    language: Language = "english"

    def __call__(self) -> Float[Tensor, "frames 3 height width"]:
        return self.clip.picture(self.size)

    @property
    def record(self) -> Record:
        """The motion as target, and a name for the clip as source."""
        motion = self.clip.motion if self.language == "english" else MOTION_WORDS[self.clip.motion]
        return Record(self.clip.where, motion, self.clip.where)
