"""Synthetic samples: scenes with labelled boxes, rendered on access."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.data.image.synthetic.boxes import Boxed
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.synthetic.words import SHAPE_WORDS, Language
from regard.data.records import Record
from regard.tasks.detect.data import Annotated


@dataclass(frozen=True)
class SyntheticScene:
    """Renders a scene at `size` pixels a side, with its annotation in English or in Chinese."""

    boxed: Boxed
    size: int = 64
    language: Language = "english"

    def __call__(self) -> Float[Tensor, "3 height width"]:
        return self.boxed.picture(self.size)

    @property
    def annotated(self) -> Annotated:
        """The shapes, and their boxes as left, top, right and bottom in pixels."""
        names = [SHAPES[label] for label in self.boxed.labels]
        labels = tuple(SHAPE_WORDS[name] if self.language == "chinese" else name for name in names)
        centre, half = self.boxed.boxes[:, :2], self.boxed.boxes[:, 2:] / 2
        edges = [(*near, *far) for near, far in zip((centre - half).tolist(), (centre + half).tolist(), strict=True)]
        boxes = tuple(tuple(round(at * self.size, 2) for at in edge) for edge in edges)
        return Annotated(Record(self.boxed.where, None, self.boxed.where), labels, boxes)
