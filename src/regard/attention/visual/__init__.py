"""Visual attention inside a CNN: over channels, positions and receptive fields of a feature map.

Each is a module from (batch, channels, height, width) to the same, to be put between the layers of any network. Where maps
of several sizes are padded in one batch, `keep` is their padding mask, and the padding does not influence the result.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard import registry
from regard.attention.masked_pool import Image as Image
from regard.attention.masked_pool import Keep, zero_padding
from regard.attention.types import Attended

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard.attention.visual.channel import Channel
    from regard.attention.visual.channel_spatial import ChannelSpatial
    from regard.attention.visual.non_local import NonLocal
    from regard.attention.visual.selective_kernel import SelectiveKernel
    from regard.attention.visual.spatial import Spatial

__all__ = ["Channel", "ChannelSpatial", "NonLocal", "SelectiveKernel", "Spatial", "Visual"]


Values = Float[Tensor, "batch channels *places"]
Scores = Float[Tensor, "batch heads queries keys"]


class Visual(nn.Module, ABC):
    """Base of attention inside a CNN, from a feature map to one of the same shape.

        context = module(image, keep)              the context alone
        attended = module.attend(image)            with the weights

    `axes` name the heads, queries and keys of the weights; "" where there is only one.
    """

    axes: ClassVar[tuple[str, str, str]]

    def __init__(self, channels: int):
        super().__init__()
        if channels < 1:
            raise ValueError(f"{type(self).__name__} needs 1 channel or more, got {channels}")
        self.channels = channels

    @abstractmethod
    def attend(self, image: Image, weights: bool = True, keep: Keep = None) -> Attended:
        """The context, zeros outside `keep`, and the weights if requested."""

    def forward(self, image: Image, keep: Keep = None) -> Image:
        return self.attend(image, weights=False, keep=keep).context

    def check(self, image: Tensor, keep: Keep = None) -> None:
        """Raise for an input that is no feature map of this many channels, or a mask of another shape."""
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
    """Gating of a feature map: each part is multiplied by its weight.

    values = split(image)                      the parts: the map as it is, or several made from it
    scores = score(values)                     one score for each part
    weights = normalise(scores, allowed)       weights, by any normaliser
    context = combine(values, weights)         weighted parts
    """

    def __init__(self, channels: int, normalise: Any):
        super().__init__(channels)
        self.normalise = registry.build(normalise, "normalise")

    def split(self, image: Image, keep: Keep = None) -> Values:
        """The parts: by default the map itself."""
        return image

    @abstractmethod
    def score(self, values: Values, keep: Keep = None) -> Scores:
        """The score of each part."""

    def allowed(self, keep: Bool[Tensor, "batch height width"]) -> Bool[Tensor, "#batch #heads #queries keys"] | None:
        """The mask of the parts; None: all."""
        return None

    @abstractmethod
    def combine(self, values: Values, weights: Scores) -> Image:
        """The parts multiplied by their weights, as one map."""

    def attend(self, image: Image, weights: bool = True, keep: Keep = None) -> Attended:
        """The stages one after the other."""
        self.check(image, keep)
        options = {} if keep is None else {"keep": keep}
        values = self.split(zero_padding(image, keep), **options)
        normalised = self.normalise(self.score(values, **options), None if keep is None else self.allowed(keep))
        shares, sampled = normalised if isinstance(normalised, tuple) else (normalised, None)
        return Attended(self.combine(values, shares), shares if weights else None, sampled=sampled)


def reduce_channels(name: str, channels: int, reduction: int) -> int:
    """channels / reduction, or an error where that is no integer."""
    if reduction < 1 or channels % reduction:
        raise ValueError(
            f"{name} needs a reduction that divides its channels, got {channels} channels and reduction {reduction}; "
            f"choose a divisor of {channels}"
        )
    return channels // reduction


if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        return registry.find_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
