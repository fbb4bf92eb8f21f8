"""Detectors to compare with: k-means on windows, principal components of windows, and random scores."""

import math

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.series.batch import SeriesSource

Vectors = Float[Tensor, "windows features"]
MOST_WINDOWS, ROUNDS, COMPONENTS = 5_000, 50, 64
"""Windows to fit on, rounds of Lloyd's algorithm, and components at most."""


def flatten(source: SeriesSource) -> Vectors:
    """Windows as vectors; a missing value is the mean."""
    return (source.data * source.observed).flatten(1)


class KMeans(nn.Module):
    """Distance of a window to the nearest of k centres.

    score = min_c ‖x - c‖        Yairi et al. 2001; KMeansAD of TSB-AD
    """

    def __init__(self, clusters: int, features: int):
        super().__init__()
        self.centres: Tensor
        self.register_buffer("centres", torch.zeros(clusters, features))

    @torch.no_grad()
    def fit(self, windows: Vectors, seed: int = 0) -> None:
        """Lloyd's algorithm from centres that are chosen as k-means++ does."""
        generator = torch.Generator().manual_seed(seed)
        windows = _sample(windows, generator)
        centres = windows[torch.randint(len(windows), (1,), generator=generator)]
        nearest = torch.cdist(windows, centres)[:, 0]
        for _ in range(len(self.centres) - 1):
            chances = nearest.square()
            chances = chances if chances.sum() > 0 else torch.ones_like(chances)
            chosen = windows[torch.multinomial(chances, 1, generator=generator)]
            centres = torch.cat((centres, chosen))
            nearest = torch.minimum(nearest, torch.cdist(windows, chosen)[:, 0])
        for _ in range(ROUNDS):
            closest = torch.cdist(windows, centres).argmin(1)
            sums = torch.zeros_like(centres).index_add_(0, closest, windows)
            counts = torch.bincount(closest, minlength=len(centres))[:, None]
            moved = torch.where(counts > 0, sums / counts.clamp_min(1), centres)
            if torch.equal(moved, centres):
                break
            centres = moved
        self.centres.copy_(centres)

    def forward(self, source: SeriesSource) -> Float[Tensor, "batch time"]:
        """Score of each window, at all of its steps."""
        return _at_all_steps(torch.cdist(flatten(source), self.centres).amin(1), source)


class Pca(nn.Module):
    """Distance of a window to the space of the principal components that explain a share of the variance.

    score = ‖x - μ - V Vᵀ (x - μ)‖        Shyu et al. 2003
    """

    def __init__(self, features: int, variance: float):
        super().__init__()
        self.variance = variance
        self.mean: Tensor
        self.components: Tensor
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("components", torch.zeros(min(COMPONENTS, features), features))

    @torch.no_grad()
    def fit(self, windows: Vectors, seed: int = 0) -> None:
        """Components of the windows; those beyond the share of the variance are zero."""
        windows = _sample(windows, torch.Generator().manual_seed(seed))
        self.mean.copy_(windows.mean(0))
        _, values, vectors = torch.linalg.svd(windows - self.mean, full_matrices=False)
        explained = values.square().cumsum(0) / values.square().sum().clamp_min(1e-12)
        count = min(int((explained < self.variance).sum()) + 1, len(self.components), len(vectors))
        self.components.zero_()
        self.components[:count] = vectors[:count]

    def forward(self, source: SeriesSource) -> Float[Tensor, "batch time"]:
        """Score of each window, at all of its steps."""
        centred = flatten(source) - self.mean
        rest = centred - centred @ self.components.T @ self.components
        return _at_all_steps(rest.norm(dim=1), source)


def draw_scores(count: int, seed: int = 0) -> NDArray[np.float64]:
    """Random scores, uniform from 0 to 1."""
    return np.random.default_rng(seed).random(count)


def _sample(windows: Vectors, generator: torch.Generator) -> Vectors:
    if len(windows) <= MOST_WINDOWS:
        return windows
    return windows[torch.randperm(len(windows), generator=generator)[:MOST_WINDOWS]]


def _at_all_steps(score: Float[Tensor, " batch"], source: SeriesSource) -> Float[Tensor, "batch time"]:
    return (score / math.sqrt(source.data[0].numel()))[:, None].expand(-1, source.data.shape[1])
