"""Mean and variance normalisation of features, over each recording or over the training data."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

Features = Float[Tensor, "frames channels"]
LEAST = 1e-3
"""Least deviation of a channel: silence is 0, not noise that was amplified."""


@dataclass(frozen=True)
class Normalisation:
    """Normalisation of each channel: x' = (x - mean) / max(deviation, 1e-3).

    The mean and the deviation are those of the recording ("utterance"), those given ("corpus"), or 0 and 1 ("none").
    """

    kind: str = "utterance"
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("utterance", "corpus", "none"):
            raise ValueError(f"normalisation needs to be utterance, corpus or none, got {self.kind!r}")

    def __call__(self, features: Features) -> Features:
        if self.kind == "none":
            return features
        if self.kind == "corpus":
            mean, deviation = (torch.tensor(values, dtype=features.dtype) for values in (self.mean, self.deviation))
            return (features - mean) / deviation.clamp_min(LEAST)
        return (features - features.mean(0)) / features.std(0, correction=0).clamp_min(LEAST)

    @classmethod
    def measure(cls, corpus: Iterable[Float[Tensor, "_frames channels"]]) -> "Normalisation":
        """Normalisation by the mean and the deviation of all frames."""
        count, total, square = 0, torch.zeros(()), torch.zeros(())
        for features in corpus:
            count, values = count + len(features), features.double()
            total, square = total + values.sum(0), square + values.square().sum(0)
        mean = total / max(count, 1)
        deviation = (square / max(count, 1) - mean.square()).clamp_min(0).sqrt()
        return cls("corpus", *(tuple(round(value, 5) for value in part.tolist()) for part in (mean, deviation)))
