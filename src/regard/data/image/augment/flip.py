"""Flip a picture: left for right, top for bottom."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.image.augment import Augmented, keep_boxes, share


@dataclass(frozen=True)
class Flip:
    """Flip a picture with probability `across` left for right, and with probability `down` top for bottom."""

    across: float = 0.5
    down: float = 0.0

    def __post_init__(self) -> None:
        share("the probability of a flip", self.across)
        share("the probability of a flip", self.down)

    def __call__(
        self,
        picture: Float[Tensor, "*frames channels height width"],
        chance: np.random.Generator,
        boxes: Float[Tensor, "boxes 4"] | None = None,
    ) -> Augmented:
        across, down = chance.random(2) < (self.across, self.down)
        for turned, side, place in ((across, -1, 0), (down, -2, 1)):
            if turned:
                picture = picture.flip(side)
                boxes = None if boxes is None else _mirrored(boxes, place)
        return keep_boxes(picture, boxes)


def _mirrored(boxes: Float[Tensor, "boxes 4"], place: int) -> Float[Tensor, "boxes 4"]:
    column = torch.arange(4, device=boxes.device) == place
    return torch.where(column, 1 - boxes, boxes)
