"""Scenes whose label is a shape, as pictures that are drawn when they are asked for."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.data.drawn.boxes import Boxed
from regard.data.drawn.shapes import SHAPES
from regard.data.record import Record


@dataclass(frozen=True)
class Drawn:
    """Draws a scene, at so many pixels a side, and knows the shapes on it."""

    boxed: Boxed
    size: int = 64

    def __call__(self) -> Float[Tensor, "3 height width"]:
        return self.boxed.picture(self.size)

    @property
    def record(self) -> Record:
        """The shapes as a target, and a name for the picture as its source."""
        shapes = dict.fromkeys(SHAPES[label] for label in self.boxed.labels)
        return Record(self.boxed.where, ", ".join(shapes), self.boxed.where)
