"""Channel attention: squeeze-and-excitation."""

from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.masked_pool import Keep, compute_masked_max, compute_masked_mean
from regard.attention.visual import Gating, Image, reduce_channels


class Channel(Gating):
    """Squeeze-and-excitation: channel weights from the globally pooled channels.

        a = σ(W₂ max(0, W₁ m)),    m_c = mean of x_c,    y_c = a_c x_c

    Hu, Shen and Sun 2018, "squeeze and excitation", sections 3.1 and 3.2, https://arxiv.org/abs/1709.01507
    W₁ reduces the channels by `reduction` and W₂ expands them again. With `peak` max pooling goes through the same network
    as the mean, and the two scores are added: Woo et al. 2018, section 3, https://arxiv.org/abs/1807.06521
    Weights are (batch, 1, 1, channels).
    Cost: time O(C H W + C² / r), memory O(C H W).
    """

    axes: ClassVar[tuple[str, str, str]] = ("", "", "channel")

    def __init__(self, channels: int, reduction: int = 16, peak: bool = False, normalise: Any = "sigmoid"):
        super().__init__(channels, normalise)
        inner = reduce_channels("Channel", channels, reduction)
        self.peak = peak
        self.excite = nn.Sequential(nn.Linear(channels, inner, False), nn.ReLU(), nn.Linear(inner, channels, False))

    def score(self, values: Image, keep: Keep = None) -> Float[Tensor, "batch 1 1 channels"]:
        scores = self.excite(compute_masked_mean(values, keep))
        if self.peak:
            scores = scores + self.excite(compute_masked_max(values, keep))
        return scores[:, None, None]

    def combine(self, values: Image, weights: Float[Tensor, "batch 1 1 channels"]) -> Image:
        return values * weights[:, 0, 0, :, None, None]
