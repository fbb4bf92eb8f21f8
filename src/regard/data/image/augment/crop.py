"""Take a part out of a picture."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.image.augment import Augmented, share
from regard.data.image.augment.boxes import VISIBLE, inside


@dataclass(frozen=True)
class Crop:
    """A part of a picture, whose height and width are each drawn between `least` and all of it, anywhere in it.

    With `upscale` the part is brought back to the size of the picture, so that things in it are larger.
    """

    least: float = 0.7
    upscale: bool = False
    visible: float = VISIBLE

    def __post_init__(self) -> None:
        share("the least share of a crop", self.least)

    def __call__(
        self,
        picture: Float[Tensor, "*frames channels height width"],
        chance: np.random.Generator,
        boxes: Float[Tensor, "boxes 4"] | None = None,
    ) -> Augmented:
        *_, channels, height, width = picture.shape
        high, wide = (max(1, round(side * float(chance.uniform(self.least, 1)))) for side in (height, width))
        top, left = int(chance.integers(height - high + 1)), int(chance.integers(width - wide + 1))
        part = picture[..., top : top + high, left : left + wide]
        if self.upscale:
            flat = part.reshape(-1, channels, high, wide)
            larger = torch.nn.functional.interpolate(flat, (height, width), mode="bilinear", align_corners=False)
            part = larger.view(*picture.shape[:-2], height, width)
        if boxes is None:
            return Augmented(part)
        sides = boxes.new_tensor([width / wide, height / high])
        corner = boxes.new_tensor([left / wide, top / high])
        cut = torch.cat((boxes[:, :2] * sides - corner, boxes[:, 2:] * sides), dim=1)
        return Augmented(part, *inside(cut, self.visible))
