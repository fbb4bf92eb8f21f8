"""Attention inside a CNN: which channels, which places and which receptive fields of a feature map count.

Each is a module from (batch, channels, height, width) to the same, to be set between the layers of any network. Where maps
of several sizes stand in one batch, `keep` is True at the places of each, and what is outside might as well not exist.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard import registry
from regard.attention.masked_pool import Image as Image
from regard.attention.masked_pool import Keep, hide
from regard.attention.types import Attended

Values = Float[Tensor, "batch channels *places"]
Scores = Float[Tensor, "batch heads queries keys"]


class Visual(nn.Module, ABC):
    """A feature map in, the same with what counts brought out: every attention inside a CNN has this face.

        context = module(image, keep)              the context alone
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
    def attend(self, image: Image, weights: bool = True, keep: Keep = None) -> Attended:
        """The context, zeros outside `keep`, and the weights that made it where they are wanted."""

    def forward(self, image: Image, keep: Keep = None) -> Image:
        return self.attend(image, weights=False, keep=keep).context

    def check(self, image: Tensor, keep: Keep = None) -> None:
        """Raise for what is no feature map of this many channels, or kept in another shape."""
        shape = tuple(image.shape)
        if len(shape) != 4 or shape[1] != self.channels or 0 in shape[2:]:
            raise ValueError(
                f"{type(self).__name__} was made for feature maps of (batch, {self.channels}, height, width) with at least "
                f"one place, got {shape}"
            )
        if keep is not None and tuple(keep.shape) != (shape[0], *shape[2:]):
            raise ValueError(
                f"{type(self).__name__} needs a keep of (batch, height, width) = {(shape[0], *shape[2:])}, "
                f"got {tuple(keep.shape)}"
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
        self.normalise = registry.build(normalise, "normalise")

    def split(self, image: Image, keep: Keep = None) -> Values:
        """What is weighed: the map as it is."""
        return image

    @abstractmethod
    def score(self, values: Values, keep: Keep = None) -> Scores:
        """How much each part counts."""

    def allowed(self, keep: Bool[Tensor, "batch height width"]) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
        """Which parts may count; None: all."""
        return None

    @abstractmethod
    def combine(self, values: Values, weights: Scores) -> Image:
        """Each part as much as its share says."""

    def attend(self, image: Image, weights: bool = True, keep: Keep = None) -> Attended:
        """The stages one after the other."""
        self.check(image, keep)
        told = {} if keep is None else {"keep": keep}
        values = self.split(hide(image, keep), **told)
        normalised = self.normalise(self.score(values, **told), None if keep is None else self.allowed(keep))
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
    return registry.attribute(__name__, name)
