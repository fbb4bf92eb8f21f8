"""Erase a part of a picture."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.data.image.augment import Augmented, keep_boxes, share


@dataclass(frozen=True)
class Erase:
    """Random erasing: with some probability a grey rectangle over a picture, so that no part of a thing decides alone.

    Its area is drawn up to `largest` of the picture's, its proportions between `slimmest` and one over that, its grey
    between black and white. Random erasing: Zhong et al. 2017, https://arxiv.org/abs/1708.04896
    Unlike the paper, all pixels of the rectangle get one value, and boxes under it stay.
    """

    probability: float = 0.5
    largest: float = 0.2
    slimmest: float = 0.3

    def __post_init__(self) -> None:
        share("the probability of erasing", self.probability)
        share("the largest share to erase", self.largest)
        if not 0 < self.slimmest <= 1:
            raise ValueError(f"the slimmest proportion needs to be above 0 and at most 1, got {self.slimmest}")

    def __call__(
        self,
        picture: Float[Tensor, "*frames channels height width"],
        chance: np.random.Generator,
        boxes: Float[Tensor, "boxes 4"] | None = None,
    ) -> Augmented:
        luck, area, slim, grey, down, across = (float(number) for number in chance.random(6))
        if luck >= self.probability:
            return keep_boxes(picture, boxes)
        height, width = picture.shape[-2:]
        pixels = area * self.largest * height * width
        ratio = self.slimmest ** (2 * slim - 1)
        high, wide = min(height, int(math.sqrt(pixels * ratio))), min(width, int(math.sqrt(pixels / ratio)))
        top, left = int(down * (height - high + 1)), int(across * (width - wide + 1))
        erased = picture.clone()
        erased[..., top : top + high, left : left + wide] = grey
        return keep_boxes(erased, boxes)
