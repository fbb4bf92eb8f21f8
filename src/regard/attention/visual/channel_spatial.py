"""Channel and spatial attention, one after the other: CBAM."""

from typing import ClassVar

from regard.attention.masked_pool import Keep
from regard.attention.types import Attended
from regard.attention.visual import Image, Visual
from regard.attention.visual.channel import Channel
from regard.attention.visual.spatial import Spatial


class ChannelSpatial(Visual):
    """CBAM: channel attention followed by spatial attention.

        x' = channel(x),    y = spatial(x')        so that    y_cp = a_c b_p x_cp

    Woo et al. 2018, CBAM, section 3, https://arxiv.org/abs/1807.06521
    The channels are pooled by mean and maximum: Channel with peak=True.
    Weights are those of both, a_c b_p, (batch, 1, channels, height · width). Each half is a module of its own, with stages
    of its own: `module.channel` and `module.spatial`.
    Cost: that of Channel and of Spatial; the weights, if requested, C H W numbers.
    """

    axes: ClassVar[tuple[str, str, str]] = ("", "channel", "place")

    def __init__(self, channels: int, reduction: int = 16, kernel: int = 7):
        super().__init__(channels)
        self.channel = Channel(channels, reduction, peak=True)
        self.spatial = Spatial(channels, kernel)

    def attend(self, image: Image, weights: bool = True, keep: Keep = None) -> Attended:
        """The stages of the channels, then those of the positions."""
        first = self.channel.attend(image, weights, keep)
        second = self.spatial.attend(first.context, weights, keep)
        if first.weights is None or second.weights is None:
            return second
        return second._replace(weights=first.weights.mT @ second.weights)
