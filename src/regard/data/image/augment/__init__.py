"""Change pictures at random, so that a model sees none of them twice alike. One file is one kind of change.

A change is a frozen value; called with a picture and a numpy Generator it gives another picture, and nothing else goes in
or out. So a batch whose generator comes from (seed, step) is the same whenever it is made. Boxes, where they are given,
follow the picture, and those that leave it are dropped. All frames of a clip change alike.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


class Augmented(NamedTuple):
    """A picture after a change."""

    picture: Float[Tensor, "*frames channels new_height new_width"]
    boxes: Float[Tensor, "staying 4"] | None = None
    """Remaining boxes, as centre x, centre y, width and height in shares of the picture."""
    stayed: Bool[Tensor, "boxes"] | None = None
    """Mask of the remaining boxes among those before the change, which selects their labels."""


@runtime_checkable
class Change(Protocol):
    """The face of every change."""

    def __call__(
        self,
        picture: Float[Tensor, "*frames channels height width"],
        chance: np.random.Generator,
        boxes: Float[Tensor, "boxes 4"] | None = None,
    ) -> Augmented: ...


@runtime_checkable
class BatchChange(Change, Protocol):
    """A change that can be made of several pictures of one size at once."""

    def together(
        self, pictures: Float[Tensor, "batch channels height width"], chance: np.random.Generator
    ) -> Float[Tensor, "batch channels height width"]: ...


@dataclass(frozen=True)
class Compose:
    """Composition of changes: one after the other."""

    changes: tuple[Change, ...]

    def __call__(
        self,
        picture: Float[Tensor, "*frames channels height width"],
        chance: np.random.Generator,
        boxes: Float[Tensor, "boxes 4"] | None = None,
    ) -> Augmented:
        stayed = None if boxes is None else torch.ones(len(boxes), dtype=torch.bool)
        for change in self.changes:
            picture, boxes, still = change(picture, chance, boxes)
            if stayed is not None and still is not None:
                stayed = stayed.masked_scatter(stayed, still)
        return Augmented(picture, boxes, stayed)


def keep_boxes(picture: Float[Tensor, "*frames channels height width"], boxes: Float[Tensor, "boxes 4"] | None) -> Augmented:
    """A change of colours alone: every box stays where it was."""
    return Augmented(picture, boxes, None if boxes is None else torch.ones(len(boxes), dtype=torch.bool))


def share(name: str, value: float) -> None:
    """Raise unless `value` is a share, from 0 to 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} needs to be from 0 to 1, got {value}")
