"""Monotonic chunkwise attention, MoChA: a softmax over a chunk of keys that ends where monotonic attention stops."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention.mechanisms.monotonic import Energy, Monotonic, MonotonicNormaliser, score_in_blocks
from regard.attention.monotonic import MonotonicStep, Place, Positions
from regard.attention.normalise import Allowed, Scores, widen
from regard.attention.normalise.softmax import Softmax
from regard.attention.score.additive import Additive
from regard.attention.types import Memory


class ChunkEnergy(Energy):
    """Monotonic and chunk energies of a query and a key, with their prepared keys side by side.

        e = g vᵀ tanh(W q + U k + b) / ‖v‖ + r

    Called like any score it gives the first, the monotonic energy of Energy; `inside` gives the chunk energy.
    """

    def __init__(self, query: int, key: int, hidden: int | None = None, heads: int = 1):
        super().__init__(query, key, hidden, heads)
        self.worth = Additive(query, key, hidden, heads)

    def prepare(self, key: Float[Tensor, "batch key_heads keys key"]) -> Float[Tensor, "batch heads keys both"]:
        """U k + b of both energies: independent of the query, so it is computed once per source."""
        return torch.cat((super().prepare(key), self.worth.prepare(key)), dim=-1)

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys both"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        return super().forward(query, prepared.chunk(2, dim=-1)[0])

    def score_chunk(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys both"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The chunk energies, whose softmax gives the weights within a chunk."""
        energies: Tensor = self.worth(query, prepared.chunk(2, dim=-1)[1])
        return energies


class Mocha(Monotonic):
    """Monotonic attention with soft attention over the chunk of keys that ends at each stop.

        u_ij = vᵀ tanh(W s_i + U h_j)
        training:  b_ij = Σ_{k=j}^{j+w-1} a_ik exp(u_ij) / Σ_{l=k-w+1}^{k} exp(u_il),    c_i = Σ_j b_ij h_j
        else:      c_i = Σ_{j=t-w+1}^{t} softmax_j(u_i) h_j,    t the stop; c_i = 0 if there is none

    Chiu and Raffel 2018, section 2, https://arxiv.org/abs/1712.05382
    with a, e and t as in Monotonic, w the width of a `chunk`. A masked key does not count among the w. u has no bias, being
    Additive. Each chunk has its own maximum subtracted, so that none overflows or underflows.
    Cost: training twice that of Monotonic and O(T S w), memory T S w; else O(T (1 + w) + S) energies for T queries.
    """

    energies: ClassVar[type[Energy]] = ChunkEnergy

    def __init__(
        self,
        query: int,
        key: int | None = None,
        *,
        chunk: int = 2,
        r: float = -1.0,
        noise: float = 3.0,
        **options: Any,
    ):
        if chunk < 1:
            raise ValueError(f"Mocha needs a chunk of 1 or more keys, got {chunk}; 1 is Monotonic")
        super().__init__(query, key, r=r, noise=noise, **options)
        self.chunk = chunk

    def distribute(self, query: Tensor, memory: Memory, stops: Scores, allowed: Allowed | None) -> Scores:
        """Expected weights: each stopping probability distributed over the chunk that ends there."""
        energies = score_in_blocks(self.score.score_chunk, query, memory.keys)
        return distribute_stops(stops, widen(energies), self.chunk, allowed)

    def select_keys(self, step: MonotonicStep, place: Place) -> tuple[Positions, Float[Tensor, "some spots"]]:
        """The chunk that ends at `place`, and its weights; masked keys make it reach further back.

        An exported program, which cannot loop, reaches back to the first key at once.
        """
        if not step.keys:
            return super().select_keys(step, place)
        exporting = torch.compiler.is_exporting()
        reach, stopped = step.keys if exporting else self.chunk, (place < step.keys)[:, None]
        while True:
            positions = place[:, None] + torch.arange(1 - reach, 1, device=place.device)
            visible = step.allows(positions) & stopped
            missing = (visible.sum(-1, keepdim=True) < self.chunk) & stopped & (positions[:, :1] > 0)
            if exporting or not missing.any():
                break
            reach *= 2
        chunk = visible & (visible.flip(-1).cumsum(-1).flip(-1) <= self.chunk)
        energies = self.score.score_chunk(step.query, step.gather(step.memory.keys, positions))
        weights = Softmax()(widen(energies), chunk[:, None, None])
        return positions.clamp(0, step.keys - 1), weights[:, 0, 0]


@dataclass(frozen=True, eq=False)
class ChunkNormaliser:
    """Monotonic stopping probabilities and their chunks as one normaliser.

        b_j = Σ_{k=j}^{j+w-1} a_k exp(u_j) / Σ_{l=k-w+1}^{k} exp(u_l)

    The chunk energies u are given beforehand: scoring is no part of a normaliser.
    """

    stops: MonotonicNormaliser
    energies: Scores
    width: int
    sums_to_one: ClassVar[bool] = False

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        return distribute_stops(self.stops(scores, allowed), self.energies, self.width, allowed)


def distribute_stops(stops: Scores, energies: Scores, width: int, allowed: Allowed | None = None) -> Scores:
    """Distribute each stop over the last `width` allowed keys up to it by exp(energy), with two moving sums.

        b_j = Σ_{k=j}^{j+w-1} a_k exp(u_j - m_k) / Σ_{l=k-w+1}^{k} exp(u_l - m_k)

    where m_k is the largest energy of the chunk that ends at k, so that no exponent is above 0 and no sum below 1.
    """
    if not stops.shape[-1]:  # no keys, no chunk
        return stops
    if allowed is None:
        chunk = slide_windows(energies, width - 1, 0, -math.inf)
        highest = chunk.detach().amax(-1)
        shares = slide_windows(stops / (chunk - highest[..., None]).exp().sum(-1), 0, width - 1, 0.0)
        return (shares * (energies[..., None] - slide_windows(highest, 0, width - 1, math.inf)).exp()).sum(-1)
    allowed, keys = allowed.expand_as(stops), stops.shape[-1]
    slot = torch.where(allowed, allowed.cumsum(-1) - 1, keys)  # allowed keys are compacted; the last slot takes the others
    empty = stops.new_zeros(*stops.shape[:3], keys + 1)
    stops, energies = (empty.scatter(-1, slot, tensor)[..., :keys] for tensor in (stops, energies))
    return distribute_stops(stops, energies, width).gather(-1, slot.clamp_max(keys - 1)).masked_fill(~allowed, 0.0)


def slide_windows(
    data: Float[Tensor, "*rows keys"], before: int, after: int, fill: float
) -> Float[Tensor, "*rows keys width"]:
    """Sliding windows of each key with `left` and `right` neighbours, and `fill` beyond the ends."""
    return F.pad(data, (before, after), value=fill).unfold(-1, before + after + 1, 1)
