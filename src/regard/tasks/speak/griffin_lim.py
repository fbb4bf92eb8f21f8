"""Griffin-Lim: sound from a log mel spectrogram, whose phases are estimated."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.audio.features import LogMel

ITERATIONS = 60
MOMENTUM = 0.99
"""Of the accelerated iteration; 0 is the plain one."""
LEAST = 1e-10


def invert_log_mel(
    front: LogMel, frames: Float[Tensor, "frames bins"], iterations: int = ITERATIONS, momentum: float = MOMENTUM
) -> Float[Tensor, " samples"]:
    """Samples whose log mel spectrogram is near `frames`: (frames - 1) hop of them, of a peak of at most 1.

    Griffin and Lim 1984, https://doi.org/10.1109/TASSP.1984.1164317: the phases of the transform of the sound that the
    phases before gave, in turn; accelerated as by Perraudin et al. 2013, https://doi.org/10.1109/WASPAA.2013.6701851. It
    begins with random phases from a fixed seed, so that equal frames give equal sound.
    """
    magnitude = estimate_magnitude(front, frames)
    missing = front.points - front.window
    window = torch.nn.functional.pad(torch.hann_window(front.window), (missing // 2, missing - missing // 2))
    length = max(1, (len(frames) - 1) * front.hop)
    generator = torch.Generator().manual_seed(0)
    phases = torch.exp(2j * torch.pi * torch.rand(magnitude.shape, generator=generator))
    before = torch.zeros_like(phases)
    for _ in range(iterations):
        samples = _invert(magnitude * phases, front, window, length)
        rebuilt = torch.stft(
            samples, front.points, front.hop, window=window, center=True, pad_mode="constant", return_complex=True
        )
        phases = rebuilt + momentum * (rebuilt - before)
        phases, before = phases / phases.abs().clamp_min(LEAST), rebuilt
    samples = _invert(magnitude * phases, front, window, length)
    return samples / samples.abs().max().clamp_min(1.0)


def estimate_magnitude(
    front: LogMel, frames: Float[Tensor, "frames bins"], iterations: int = 40
) -> Float[Tensor, "frequencies frames"]:
    """Magnitudes whose mel spectrogram is near exp(frames): non-negative powers by multiplicative updates.

    p ← p ∘ (F m) / (F Fᵀ p): Lee and Seung 2001, https://papers.nips.cc/paper/1861; they begin with F m.
    """
    filters, mel = front.filters.double(), frames.detach().double().cpu().clamp(-23.1, 20.0).exp()
    target = mel @ filters.T  # frames frequencies
    power, gram = target.clamp_min(LEAST), filters @ filters.T
    for _ in range(iterations):
        power = power * target / (power @ gram).clamp_min(LEAST)
    return power.clamp_min(0.0).sqrt().T.float()


def _invert(spectrum: Tensor, front: LogMel, window: Float[Tensor, " points"], length: int) -> Float[Tensor, " samples"]:
    samples: Tensor = torch.istft(spectrum, front.points, front.hop, window=window, center=True, length=length)
    return samples
