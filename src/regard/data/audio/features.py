"""Features of sound: log mel spectrogram and mel-frequency cepstral coefficients, by torch.stft.

Frame t is centred on sample t * hop; the sound is padded with zeros by half a window on both sides, so that there are
1 + samples // hop frames, and one for the shortest sound.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.config.audio import AudioData

FLOOR = 1e-10
"""Least power of a mel bin, that of silence, whose logarithm is -23.03."""
BLOCK = 1 << 13
"""Frames whose spectrum is computed at a time: an hour of sound takes no more memory than its features."""

Scale = Literal["htk", "slaney"]


@dataclass(frozen=True)
class LogMel:
    """Log mel spectrogram.

        frames = ln(max(|STFT|² F, 1e-10))        F: triangular filters on the mel scale

    Davis and Mermelstein 1980, https://doi.org/10.1109/TASSP.1980.1163420. The window is Hann's, periodic. `scale` is
    2595 log10(1 + f / 700) (htk), or linear below 1 kHz and logarithmic above, with filters of unit area (slaney).
    """

    rate: int = 16_000
    bins: int = 80
    window: int = 400
    """Length of the window in samples."""
    hop: int = 160
    """Samples between two frames."""
    low: float = 20.0
    """Lowest frequency in hertz."""
    high: float | None = None
    """Highest frequency in hertz; None: half the rate."""
    scale: Scale = "htk"

    def __post_init__(self) -> None:
        if min(self.rate, self.bins, self.window, self.hop) < 1:
            raise ValueError(
                "features need a rate, bins, a window and a hop of 1 or more, got "
                f"{self.rate}, {self.bins}, {self.window} and {self.hop}"
            )
        if not 0 <= self.low < self.top <= self.rate / 2:
            raise ValueError(
                f"mel bins need to lie from 0 Hz to {self.rate / 2:g}, half the rate, got {self.low:g} to {self.top:g}"
            )
        if bool((self.filters.sum(0) == 0).any()):
            raise ValueError(
                f"{self.bins} mel bins are narrower than the {self.rate / self.points:.1f} Hz between two points of the "
                f"spectrum; take fewer bins (data.bins), or a longer window (data.window_ms)"
            )

    @property
    def top(self) -> float:
        """Highest frequency in hertz."""
        return self.rate / 2 if self.high is None else self.high

    @property
    def points(self) -> int:
        """Points of the Fourier transform: the window, rounded up to a power of 2."""
        return 1 << (self.window - 1).bit_length()

    @property
    def channels(self) -> int:
        """Numbers of a frame."""
        return self.bins

    @property
    def filters(self) -> Float[Tensor, "frequencies bins"]:
        """Filters F."""
        return build_mel_filters(self.bins, self.rate, self.points, self.low, self.top, self.scale)

    def count(self, samples: int) -> int:
        """Number of frames of so many samples."""
        return 1 + samples // self.hop

    def __call__(self, samples: Float[Tensor, " samples"]) -> Float[Tensor, "frames channels"]:
        return self.mel(samples).clamp_min(FLOOR).log()

    def mel(self, samples: Float[Tensor, " samples"]) -> Float[Tensor, "frames bins"]:
        """Power in each mel bin."""
        window, filters = torch.hann_window(self.window, device=samples.device), self.filters.to(samples.device)
        half, frames = self.points // 2, self.count(len(samples))
        padded = torch.nn.functional.pad(samples.float(), (half, half + self.hop))
        parts = []
        for first in range(0, frames, BLOCK):
            count = min(BLOCK, frames - first)
            part = padded[first * self.hop : (first + count - 1) * self.hop + self.points]
            spectrum = torch.stft(part, self.points, self.hop, self.window, window, center=False, return_complex=True)
            parts.append(spectrum.abs().square().T @ filters)
        return torch.cat(parts)


@dataclass(frozen=True)
class Mfcc(LogMel):
    """Mel-frequency cepstral coefficients: the discrete cosine transform of the log mel spectrogram.

        c_k = √(2 / B) Σ_b m_b cos(π k (b + ½) / B),     c_0 = √(1 / B) Σ_b m_b

    Davis and Mermelstein 1980, https://doi.org/10.1109/TASSP.1980.1163420
    """

    bins: int = 40
    coefficients: int = 13

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.coefficients <= self.bins:
            raise ValueError(
                f"coefficients need to be from 1 to the number of bins, {self.bins}, got {self.coefficients} "
                "(data.coefficients, data.bins)"
            )

    @property
    def channels(self) -> int:
        """Numbers of a frame."""
        return self.coefficients

    def __call__(self, samples: Float[Tensor, " samples"]) -> Float[Tensor, "frames channels"]:
        return super().__call__(samples) @ build_cosines(self.bins, self.coefficients).to(samples.device)


@lru_cache(maxsize=32)
def build_mel_filters(
    bins: int, rate: int, points: int, low: float, high: float, scale: Scale = "htk"
) -> Float[Tensor, "frequencies bins"]:
    """Triangular filters whose corners are equally far apart on the mel scale."""
    ends = [hertz_to_mel(torch.tensor(frequency, dtype=torch.float64), scale) for frequency in (low, high)]
    corners = mel_to_hertz(torch.linspace(float(ends[0]), float(ends[1]), bins + 2, dtype=torch.float64), scale)
    frequencies = torch.arange(points // 2 + 1, dtype=torch.float64)[:, None] * rate / points
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    rising, falling = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
    filters = torch.minimum(rising, falling).clamp_min(0)
    return (filters * 2 / (right - left) if scale == "slaney" else filters).float()


@lru_cache(maxsize=32)
def build_cosines(bins: int, coefficients: int) -> Float[Tensor, "bins coefficients"]:
    """Orthonormal discrete cosine transform, type II."""
    angles = (torch.arange(bins, dtype=torch.float64)[:, None] + 0.5) * torch.arange(coefficients) * torch.pi / bins
    cosines = angles.cos() * (2 / bins) ** 0.5
    cosines[:, 0] *= 0.5**0.5
    return cosines.float()


def hertz_to_mel(frequency: Float[Tensor, "*any"], scale: Scale) -> Float[Tensor, "*any"]:
    """Mel of a frequency in hertz."""
    if scale == "htk":
        return 2595 * torch.log10(1 + frequency / 700)
    above = 15 + 27 * torch.log(frequency.clamp_min(1000) / 1000) / torch.log(torch.tensor(6.4, dtype=torch.float64))
    return torch.where(frequency < 1000, 3 * frequency / 200, above)


def mel_to_hertz(mel: Float[Tensor, "*any"], scale: Scale) -> Float[Tensor, "*any"]:
    """Frequency in hertz of a mel."""
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    above = 1000 * torch.exp((mel - 15) / 27 * torch.log(torch.tensor(6.4, dtype=torch.float64)))
    return torch.where(mel < 15, 200 * mel / 3, above)


def build_features(data: AudioData) -> LogMel:
    """Features that the settings of `data` describe."""
    window, hop = (max(1, round(data.rate * span / 1000)) for span in (data.window_ms, data.hop_ms))
    low = min(20.0, data.rate / 8)
    if data.features == "mfcc":
        return Mfcc(data.rate, data.bins, window, hop, low, coefficients=data.coefficients)
    return LogMel(data.rate, data.bins, window, hop, low)
