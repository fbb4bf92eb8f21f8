"""Components as a user writes them: some that fulfil their contracts, and some with one defect each."""

from dataclasses import dataclass

import torch
from torch import nn

from regard.attention import Attention, MultiHead, ScaledDot, Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.scope import Scope


@dataclass(frozen=True)
class L1:
    """Negative L1 distance."""

    tau: float = 1.0

    def prepare(self, key):
        return key

    def __call__(self, query, prepared):
        prepared = repeat_heads(prepared, query.shape[1])
        return -(query[..., :, None, :] - prepared[..., None, :, :]).abs().sum(-1) / self.tau


class Unprepared(nn.Module):
    """A score without the key's side."""

    def forward(self, query, prepared):
        return query @ prepared.mT


class AcrossRows(ScaledDot):
    """A score that compares with the mean of all rows of the batch."""

    def prepare(self, key):
        return key - key.mean(0, keepdim=True)


class Halved(ScaledDot):
    """A score whose gradient is half of what it should be."""

    def __call__(self, query, prepared):
        scores = super().__call__(query, prepared)
        return (scores + scores.detach()) / 2


class Unmasked(Softmax):
    """A normaliser that ignores the mask."""

    def __call__(self, scores, allowed=None):
        return scores.softmax(-1)


class Doubled(Softmax):
    """A normaliser that promises weights that add up to one, and gives twice as much."""

    def __call__(self, scores, allowed=None):
        return 2 * super().__call__(scores, allowed)


@dataclass(frozen=True)
class Even(Scope):
    """Keys at even positions."""

    def __call__(self, b, h, q, k):
        return k % 2 == 0


@dataclass(frozen=True)
class Unsampled(Scope):
    """A scope that has no sample of itself."""

    mask: torch.Tensor

    def __call__(self, b, h, q, k):
        return self.mask[q, k]


class Whole(MultiHead):
    """A mechanism that fulfils its contracts."""


class Forgetful(Attention):
    """A mechanism that forgets the padding mask."""

    def within(self, memory, documents):
        return self.scope


class Sizeless(Attention):
    """A mechanism whose constructor takes no limit."""

    def __init__(self, query, key=None):
        super().__init__(query, key)


class Stranger:
    """Nothing that attention knows."""
