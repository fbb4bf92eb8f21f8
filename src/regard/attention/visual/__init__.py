"""Attention inside a CNN: which channels, which places and which receptive fields of a feature map count.

Each is a module from (batch, channels, height, width) to the same, to be set between the layers of any network.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from regard import lookup
from regard.attention.types import Attended

Image = Float[Tensor, "batch channels height width"]
Values = Float[Tensor, "batch channels *places"]
Scores = Float[Tensor, "batch heads queries keys"]


class Visual(nn.Module, ABC):
    """A feature map in, the same with what counts brought out: every attention inside a CNN has this face.

        context = module(image)                    the context alone
        attended = module.attend(image)            and where it looked

    `axes` are what the heads, queries and keys of the weights stand for; "" where there is only one.
    """

    axes: ClassVar[tuple[str, str, str]]

    def __init__(self, channels: int):
        super().__init__()
        if channels < 1:
            raise ValueError(f"{type(self).__name__} needs 1 channel or more, got {channels}")
        self.channels = channels

    @abstractmethod
    def attend(self, image: Image, weights: bool = True) -> Attended:
        """The context, and the weights that made it where they are wanted."""

    def forward(self, image: Image) -> Image:
        return self.attend(image, weights=False).context

    def check(self, image: Tensor) -> None:
        """Raise for what is no feature map of this many channels."""
        shape = tuple(image.shape)
        if len(shape) != 4 or shape[1] != self.channels or 0 in shape[2:]:
            raise ValueError(
                f"{type(self).__name__} was made for feature maps of (batch, {self.channels}, height, width) with at least "
                f"one place, got {shape}"
            )


class Gating(Visual):
    """Parts of a feature map, each let through as much as it counts.

    values = split(image)                      the parts: the map as it is, or several made from it
    scores = score(values)                     how much does each part count
    weights = normalise(scores, allowed)       turn that into a share, by any normaliser
    context = combine(values, weights)         read
    """

    def __init__(self, channels: int, normalise: Any):
        super().__init__(channels)
        self.normalise = lookup.build(normalise, "normalise")

    def split(self, image: Image) -> Values:
        """What is weighed: the map as it is."""
        return image

    @abstractmethod
    def score(self, values: Values) -> Scores:
        """How much each part counts."""

    @abstractmethod
    def combine(self, values: Values, weights: Scores) -> Image:
        """Each part as much as its share says."""

    def attend(self, image: Image, weights: bool = True) -> Attended:
        """The stages one after the other."""
        self.check(image)
        values = self.split(image)
        normalised = self.normalise(self.score(values), None)
        shares, sampled = normalised if isinstance(normalised, tuple) else (normalised, None)
        return Attended(self.combine(values, shares), shares if weights else None, sampled=sampled)


def reduced(name: str, channels: int, reduction: int) -> int:
    """channels / reduction, or an error where that is no whole number."""
    if reduction < 1 or channels % reduction:
        raise ValueError(
            f"{name} needs a reduction that divides its channels, got {channels} channels and reduction {reduction}; "
            f"choose a divisor of {channels}"
        )
    return channels // reduction


def __getattr__(name: str) -> Any:
    return lookup.attribute(__name__, name)
