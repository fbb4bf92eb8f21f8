"""Scale, shift, turn and shear a picture a little."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from regard.data.image.augment import Changed
from regard.data.image.augment.following import VISIBLE, inside, moved


@dataclass(frozen=True)
class Affine:
    """A random affine map about the middle of a picture, whose size stays.

        p -> R(turn) [[1, tan shear], [0, 1]] diag(scale) (p - middle) + middle + shift

    Drawn at random: the scale, up to a factor of 1 + `scale` larger or smaller, and of 1 + `stretch` more for the width
    alone; the shift, up to a share of each side; the angles, up to so many degrees either way.
    What comes in from outside is `fill`, or, with None, the nearest pixel of the edge.
    """

    scale: float = 0.1
    stretch: float = 0.0
    shift: float = 0.05
    turn: float = 5.0
    shear: float = 5.0
    fill: float | None = None
    visible: float = VISIBLE

    def __post_init__(self) -> None:
        for name in ("scale", "stretch", "shift"):
            if getattr(self, name) < 0:
                raise ValueError(f"an affine change needs a {name} of 0 or more, got {getattr(self, name)}")
        if not 0 <= self.turn <= 180 or not 0 <= self.shear < 80:
            raise ValueError(f"a turn is up to 180 degrees and a shear up to 80, got {self.turn} and {self.shear}")

    def __call__(
        self,
        picture: Float[Tensor, "*frames channels height width"],
        chance: np.random.Generator,
        boxes: Float[Tensor, "boxes 4"] | None = None,
    ) -> Changed:
        height, width = picture.shape[-2:]
        forward = self.draw(chance, height, width)
        drawn = _drawn(picture, forward, self.fill)
        if boxes is None:
            return Changed(drawn)
        return Changed(drawn, *inside(moved(boxes, _as_shares(forward, height, width)), self.visible))

    def draw(self, chance: np.random.Generator, height: int, width: int) -> Float[Tensor, "2 3"]:
        """A map of places in pixels from the middle, x before y, to others."""
        both, wide, across, down, turn, shear = chance.uniform(-1, 1, 6)
        up, out = (1 + self.scale) ** both, (1 + self.stretch) ** wide
        angle, slant = math.radians(self.turn * turn), math.tan(math.radians(self.shear * shear))
        turning = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        linear = turning @ np.array([[1, slant], [0, 1]]) @ np.diag([up * out, up])
        shift = np.array([[self.shift * across * width], [self.shift * down * height]])
        return torch.from_numpy(np.concatenate((linear, shift), axis=1))


def _drawn(
    picture: Float[Tensor, "*frames channels height width"], forward: Float[Tensor, "2 3"], fill: float | None
) -> Float[Tensor, "*frames channels height width"]:
    *_, channels, height, width = picture.shape
    backward = torch.linalg.inv(forward[:, :2])
    back = torch.cat((backward, -backward @ forward[:, 2:]), dim=1)
    half = torch.tensor([width / 2, height / 2], dtype=back.dtype)
    theta = back * torch.cat((half, torch.ones(1, dtype=back.dtype))) / half[:, None]  # from pixels to -1 .. 1
    flat = picture.reshape(-1, channels, height, width)
    grid = functional.affine_grid(theta[None].to(picture.dtype), [1, 1, height, width], align_corners=False)
    grid = grid.expand(len(flat), -1, -1, -1)
    if fill is None:
        seen = functional.grid_sample(flat, grid, padding_mode="border", align_corners=False)
    else:
        seen = functional.grid_sample(flat - fill, grid, padding_mode="zeros", align_corners=False) + fill
    return seen.clamp(0, 1).view_as(picture)


def _as_shares(forward: Float[Tensor, "2 3"], height: int, width: int) -> Float[Tensor, "2 3"]:
    """The same map for places in shares of the picture, from its top left corner."""
    sides = torch.tensor([width, height], dtype=forward.dtype)
    linear = forward[:, :2] * sides / sides[:, None]
    return torch.cat((linear, (forward[:, 2] / sides + 0.5 - linear.sum(1) / 2)[:, None]), dim=1)
