"""Clips whose label is what a thing does in them, drawn when they are asked for."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.data.image.synthetic.motion import MOTION_WORDS, Clip
from regard.data.image.synthetic.words import Language
from regard.data.records import Record


@dataclass(frozen=True)
class Moving:
    """Draws a clip, at so many pixels a side, and knows what happens in it."""

    clip: Clip
    size: int = 64
    language: Language = "english"

    def __call__(self) -> Float[Tensor, "frames 3 height width"]:
        return self.clip.picture(self.size)

    @property
    def record(self) -> Record:
        """The motion as a target, and a name for the clip as its source."""
        motion = self.clip.motion if self.language == "english" else MOTION_WORDS[self.clip.motion]
        return Record(self.clip.where, motion, self.clip.where)
