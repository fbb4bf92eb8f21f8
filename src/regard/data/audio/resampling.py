"""Resampling by a windowed sinc in polyphase form."""

from functools import lru_cache
from math import ceil, gcd, pi

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

ZEROS = 16
"""Zero crossings of the sinc on each side."""
ROLLOFF = 0.95
"""Cut-off as a share of the lower of the two Nyquist frequencies."""
BETA = 9.0
"""Shape of the Kaiser window: the stop band lies some 90 dB lower."""
BLOCK = 1 << 16
"""Outputs of each phase that are computed at a time, which bounds the memory of the convolution."""


def resample(samples: Float[Tensor, " samples"], rate: int, new_rate: int) -> Float[Tensor, " resampled"]:
    """Resample sound from one rate in hertz to another; ceil(samples * new_rate / rate) samples come out.

        y(j / new_rate) = Σ_n x(n) h(j / new_rate - n / rate),     h a sinc with a Kaiser window

    Outputs whose positions between two inputs are alike share one filter: with the rates divided by their greatest common
    divisor there are new_rate of these phases, and each is a convolution with stride `rate`.
    Smith and Gossett 1984, https://ccrma.stanford.edu/~jos/resample/
    """
    if rate < 1 or new_rate < 1:
        raise ValueError(f"a sampling rate needs to be 1 Hz or more, got {rate} and {new_rate}")
    divisor = gcd(rate, new_rate)
    rate, new_rate = rate // divisor, new_rate // divisor
    if rate == new_rate or not len(samples):
        return samples
    filters, width = _build_filters(rate, new_rate)
    length = ceil(len(samples) * new_rate / rate)
    padded = functional.pad(samples.float(), (width, width + rate))[None, None]
    positions, parts = ceil(length / new_rate), []
    for first in range(0, positions, BLOCK):
        count = min(BLOCK, positions - first)
        part = padded[..., first * rate : (first + count - 1) * rate + filters.shape[-1]]
        parts.append(functional.conv1d(part, filters, stride=rate)[0].T.flatten())
    return torch.cat(parts)[:length]


@lru_cache(maxsize=32)
def _build_filters(rate: int, new_rate: int) -> tuple[Float[Tensor, "phases 1 taps"], int]:
    """Filter of each phase, and the number of inputs before the first that it reads."""
    cutoff = ROLLOFF * min(rate, new_rate)
    width = ceil(ZEROS * rate / cutoff)
    offsets = torch.arange(-width, width + rate, dtype=torch.float64)[None] / rate
    time = (torch.arange(new_rate, dtype=torch.float64)[:, None] / new_rate - offsets) * cutoff
    inside = (1 - (time / ZEROS).square()).clamp_min(0).sqrt()
    window = torch.special.i0(BETA * inside) / torch.special.i0(torch.tensor(BETA, dtype=torch.float64))
    filters = torch.where(time == 0, 1.0, torch.sin(pi * time) / (pi * time)) * window.where(time.abs() <= ZEROS, 0.0)
    return (filters * cutoff / rate).float()[:, None], width
