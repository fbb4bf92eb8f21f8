"""More or less light, and more or less contrast."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.data.image.augment import Augmented, keep_boxes


@dataclass(frozen=True)
class Light:
    """Change the light and the contrast of a picture.

    x -> (x - mean) c + mean + b,    c in (1 + contrast)^±1,    b in ±brightness,    then cut to 0 .. 1
    """

    brightness: float = 0.1
    contrast: float = 0.2

    def __post_init__(self) -> None:
        if self.brightness < 0 or self.contrast < 0:
            raise ValueError(
                f"light needs a brightness and a contrast of 0 or more, got {self.brightness} and {self.contrast}"
            )

    def __call__(
        self,
        picture: Float[Tensor, "*frames channels height width"],
        chance: np.random.Generator,
        boxes: Float[Tensor, "boxes 4"] | None = None,
    ) -> Augmented:
        more, apart = (float(number) for number in chance.uniform(-1, 1, 2))
        mean = picture.mean()
        changed = (picture - mean) * (1 + self.contrast) ** apart + mean + self.brightness * more
        return keep_boxes(changed.clamp(0, 1), boxes)
