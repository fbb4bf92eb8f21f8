"""Scale, shift, turn and shear a picture a little."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.data.image.augment import Augmented
from regard.data.image.augment.boxes import VISIBLE, inside, transform_boxes


@dataclass(frozen=True)
class Affine:
    """A random affine map about the middle of a picture, whose size stays.

        p -> R(turn) [[1, tan shear], [0, 1]] diag(scale) (p - middle) + middle + shift

    Sampled at random: the scale, up to a factor of 1 + `scale` larger or smaller, and of 1 + `stretch` more for the width
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
    ) -> Augmented:
        height, width = picture.shape[-2:]
        forward = self.sample(chance, height, width)
        warped = _warp(picture.reshape(-1, *picture.shape[-3:]), forward[None], self.fill).view_as(picture)
        if boxes is None:
            return Augmented(warped)
        return Augmented(warped, *inside(transform_boxes(boxes, _as_shares(forward, height, width)), self.visible))

    def together(
        self, pictures: Float[Tensor, "batch channels height width"], chance: np.random.Generator
    ) -> Float[Tensor, "batch channels height width"]:
        """Pictures of one size in one go, each by a map of its own: one by one, small ones would take four times as long."""
        height, width = pictures.shape[-2:]
        return _warp(pictures, self.maps(chance.uniform(-1, 1, (len(pictures), 6)), height, width), self.fill)

    def sample(self, chance: np.random.Generator, height: int, width: int) -> Float[Tensor, "2 3"]:
        """Sample an affine map of positions in pixels from the middle, x before y."""
        return self.maps(chance.uniform(-1, 1, 6)[None], height, width)[0]

    def maps(self, factors: NDArray[np.float64], height: int, width: int) -> Float[Tensor, "batch 2 3"]:
        """The maps of rows of six numbers from -1 to 1."""
        both, wide, across, down, turn, shear = factors.T
        up, out = (1 + self.scale) ** both, (1 + self.stretch) ** wide
        angle, slant = np.radians(self.turn * turn), np.tan(np.radians(self.shear * shear))
        sine, cosine, one, zero = np.sin(angle), np.cos(angle), np.ones_like(up), np.zeros_like(up)
        linear = _matrix(cosine, -sine, sine, cosine) @ _matrix(one, slant, zero, one) @ _matrix(up * out, zero, zero, up)
        shift = np.stack((self.shift * across * width, self.shift * down * height), axis=-1)[..., None]
        return torch.from_numpy(np.concatenate((linear, shift), axis=-1))


def _matrix(*values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matrices of two rows and two columns, row after row."""
    return np.stack(values, axis=-1).reshape(-1, 2, 2)


def _warp(
    pictures: Float[Tensor, "batch channels height width"], forward: Float[Tensor, "#batch 2 3"], fill: float | None
) -> Float[Tensor, "batch channels height width"]:
    batch, _, height, width = pictures.shape
    backward = torch.linalg.inv(forward[..., :2])
    back = torch.cat((backward, -backward @ forward[..., 2:]), dim=-1)
    half = torch.tensor([width / 2, height / 2], dtype=back.dtype)
    theta = back * torch.cat((half, torch.ones(1, dtype=back.dtype))) / half[:, None]  # from pixels to -1 .. 1
    size = [len(theta), 1, height, width]
    grid = functional.affine_grid(theta.to(pictures.dtype), size, align_corners=False).expand(batch, -1, -1, -1)
    if fill is None:
        warped = functional.grid_sample(pictures, grid, padding_mode="border", align_corners=False)
    else:
        warped = functional.grid_sample(pictures - fill, grid, padding_mode="zeros", align_corners=False) + fill
    return warped.clamp(0, 1)


def _as_shares(forward: Float[Tensor, "2 3"], height: int, width: int) -> Float[Tensor, "2 3"]:
    """Affine map of positions in shares of the picture, from its top left corner."""
    sides = torch.tensor([width, height], dtype=forward.dtype)
    linear = forward[:, :2] * sides / sides[:, None]
    return torch.cat((linear, (forward[:, 2] / sides + 0.5 - linear.sum(1) / 2)[:, None]), dim=1)
