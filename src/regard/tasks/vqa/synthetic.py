"""Scenes with a question, as pictures that are drawn when they are asked for."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.image.synthetic.questions import SceneQuestion
from regard.data.image.synthetic.scene import Scene
from regard.data.image.synthetic.words import Language
from regard.data.records import Record
from regard.tasks.vqa.data import Inquiry


@dataclass(frozen=True)
class Drawn:
    """Draws a scene, at so many pixels a side, and knows what is asked of it and where to look for the answer."""

    asked: SceneQuestion
    size: int = 64
    language: Language = "english"

    def __call__(self) -> Float[Tensor, "3 height width"]:
        return self.asked.picture(self.size)

    @property
    def same(self) -> tuple[Scene, int]:
        """What is on the picture: several questions may be about one."""
        return self.asked.scene, self.size

    @property
    def record(self) -> Inquiry:
        """The question, and its answer for a target."""
        record = self.asked.record(self.language)
        return Inquiry(Record(record.where, record.target, record.where), record.source)

    @property
    def region(self) -> Bool[Tensor, "height width"] | None:
        """The pixels in the boxes of the things that decide; None where it is their absence that does."""
        return self.asked.scene.region(self.asked.things, self.size, self.size) if self.asked.things else None
