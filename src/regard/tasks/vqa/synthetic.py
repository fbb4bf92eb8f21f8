"""Synthetic samples: scenes with a question, rendered on access."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.image.synthetic.questions import SceneQuestion
from regard.data.image.synthetic.scene import Scene
from regard.data.image.synthetic.words import Language
from regard.data.records import Record
from regard.tasks.vqa.data import PictureQuestion


@dataclass(frozen=True)
class SyntheticQuestion:
    """Renders a scene at `size` pixels a side, with its question, answer and relevant region."""

    sample: SceneQuestion
    size: int = 64
    language: Language = "english"

    def __call__(self) -> Float[Tensor, "3 height width"]:
        return self.sample.picture(self.size)

    @property
    def same(self) -> tuple[Scene, int]:
        """Identity of the picture, which several questions may share."""
        return self.sample.scene, self.size

    @property
    def record(self) -> PictureQuestion:
        """The question, with its answer as target."""
        record = self.sample.record(self.language)
        return PictureQuestion(Record(record.where, record.target, record.where), record.source)

    @property
    def region(self) -> Bool[Tensor, "height width"] | None:
        """Mask of the boxes of the objects that decide the answer; None where their absence decides."""
        return self.sample.scene.region(self.sample.things, self.size, self.size) if self.sample.things else None
