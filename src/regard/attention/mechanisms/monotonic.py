"""Monotonic attention, Raffel's: hard alignments that only move from left to right."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.expected_monotonic import expect_alignment
from regard.attention.monotonic import MonotonicStep, Place, Positions
from regard.attention.normalise import Allowed, Scores, widen
from regard.attention.scan import shift
from regard.attention.scope import Offset
from regard.attention.score import compare
from regard.attention.score.additive import Additive
from regard.attention.stateful import Stateful
from regard.attention.types import Attended, Memory

Alignment = Float[Tensor, "batch heads 1 keys"]

BLOCK = 2**24
"""The most elements of one block of scores: an additive score has one for each query, key and hidden unit."""


class Energy(Additive):
    """Additive score with weight normalisation and a negative initial bias: above 0 the alignment stops at the key.

        e = g vᵀ tanh(W q + U k + b) / ‖v‖ + r

    Raffel et al. 2017, section 2.4, https://arxiv.org/abs/1704.00784
    """

    def __init__(self, query: int, key: int, hidden: int | None = None, heads: int = 1, r: float = -1.0):
        super().__init__(query, key, hidden, heads)
        hidden = self.v.weight.shape[-1]
        self.b = nn.Parameter(torch.zeros(heads, 1, hidden))
        self.g = nn.Parameter(torch.full((heads, 1, 1), 1 / math.sqrt(hidden)))
        self.r = nn.Parameter(torch.full((heads, 1, 1), float(r)))

    def prepare(self, key: Float[Tensor, "batch key_heads keys key"]) -> Float[Tensor, "batch heads keys hidden"]:
        """U k + b: independent of the query, so it is computed once per source."""
        return super().prepare(key) + self.b

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys hidden"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        return self.g / self.v.weight.norm(dim=-1, keepdim=True) * super().forward(query, prepared) + self.r


class MonotonicNormaliser(nn.Module):
    """Monotonic normaliser: from the previous stop on, stop at each key with probability p.

        q_ij = (1 - p_i,j-1) q_i,j-1 + a_i-1,j,    a_ij = p_ij q_ij,    a_0 = one_hot(0)

    so that a_ij is the probability that query i stops at key j. In training p = sigmoid(e + noise); in evaluation the
    alignment is hard, p = 1 where e > 0 and 0 elsewhere. Without a key to stop at the alignment has ended, and the weights
    of all later queries are zero.
    """

    sums_to_one: ClassVar[bool] = False

    def __init__(self, noise: float = 3.0):
        super().__init__()
        if noise < 0:
            raise ValueError(f"Monotonic needs noise of 0 or more, a standard deviation, got {noise}")
        self.noise = noise

    def forward(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        """The expected alignment of all queries, from the first key on."""
        return self.move(scores, allowed, self.begin(scores[:, :, :1])).to(scores.dtype)

    def begin(self, like: Alignment) -> Alignment:
        """The initial alignment: one hot at the first key."""
        first = torch.arange(like.shape[-1], device=like.device) == 0
        return first.to(widen(like).dtype).expand_as(like)

    def move(self, energies: Scores, allowed: Allowed | None, start: Alignment) -> Scores:
        """The expected alignment of each query, from that of the query before the first."""
        stop, go = self.stop_probabilities(widen(energies))
        if allowed is not None:
            stop, go = stop.masked_fill(~allowed, 0.0), go.masked_fill(~allowed, 1.0)
        return expect_alignment(stop, shift(go), start)

    def stop_probabilities(self, energies: Scores) -> tuple[Scores, Scores]:
        """The probabilities p and 1 - p, both to full precision."""
        if not self.training:
            return (energies > 0).to(energies.dtype), (energies <= 0).to(energies.dtype)
        noisy = energies + self.noise * torch.randn_like(energies) if self.noise else energies
        return torch.sigmoid(noisy), torch.sigmoid(-noisy)

    def extra_repr(self) -> str:
        return f"noise={self.noise}"


class Monotonic(Stateful):
    """Hard monotonic alignment in linear time, online; trained by its expectation.

        e_ij = g vᵀ tanh(W s_i + U h_j + b) / ‖v‖ + r,    p_ij = sigmoid(e_ij)
        training:  a_ij = p_ij Σ_{k ≤ j} a_{i-1,k} Π_{l=k}^{j-1} (1 - p_il),    c_i = Σ_j a_ij h_j
        else:      c_i = h_j for the first j ≥ t_{i-1} with e_ij > 0, which is then t_i; c_i = 0 if there is none

    Raffel et al. 2017, eq. 9 to 14, and sections 2.4 (r) and 2.5 (noise), https://arxiv.org/abs/1704.00784
    The products are exact, where appendix C.1 divides by one that underflows. `r` is the initial value of r: at -1 the
    alignment moves by about three keys a query, at -4 by about fifty, which is more than most sentences have. `noise` is
    added to the energies in training, so that confident ones pay. Weights need not sum to one. Like dropout, the formula
    follows .training; the state is a_{i-1} in training and t_{i-1} otherwise. After a query that found no key all later
    contexts are zero, in both formulas.
    Cost: training that of Additive, and O(T S log S) in T log S steps; else O(T + S) energies for T queries.
    """

    energies: ClassVar[type[Energy]] = Energy

    def __init__(self, query: int, key: int | None = None, *, r: float = -1.0, noise: float = 3.0, **options: Any):
        if "normalise" in options:
            raise ValueError(
                f"{type(self).__name__} brings its own normalisation, got normalise={options['normalise']!r}; leave it out"
            )
        if options.get("impl") == "fused":
            raise ValueError(
                f"no kernel covers {type(self).__name__}, which walks along its source one query after the other; "
                "leave impl='auto' or take 'reference'"
            )
        super().__init__(query, key, score=self.energies, normalise=MonotonicNormaliser(noise), **options)
        nn.init.constant_(self.score.r, r)

    def start(self, memory: Memory) -> Alignment | Place:
        """The initial state, at the first key: alignment probabilities in training, else a position."""
        if self.training:
            return self.normalise.begin(memory.values[..., :1].mT)
        return torch.zeros(memory.values.shape[0], dtype=torch.long, device=memory.values.device)

    def run_steps(
        self,
        query: Float[Tensor, "rows queries query"],
        memory: Memory,
        state: Alignment | Place,
        *,
        offset: Offset,
        weights: bool,
    ) -> Attended:
        """All queries at once in training, since no score depends on an earlier stop; step by step otherwise."""
        if not self.training:
            return super().run_steps(query, memory, state, offset=offset, weights=weights)
        return self.attend_expected(self.split(self.query(query)), memory, state, offset, weights)

    def step(
        self,
        query: Float[Tensor, "rows 1 query"],
        memory: Memory,
        state: Alignment | Place,
        *,
        offset: Offset,
        weights: bool,
    ) -> Attended:
        """One query: move from the state to the next stop."""
        step = MonotonicStep(self.split(self.query(query)), memory, self.score, self.scope, offset)
        place = step.stop(state)
        positions, weight = self.select_keys(step, place)
        weight = weight[:, None, None].to(memory.values.dtype)
        context = self.output(self.merge(weight @ step.gather(memory.values, positions)))
        if not weights:
            return Attended(context, state=place)
        dense = weight.new_zeros(place.shape[0], 1, 1, step.keys)
        return Attended(context, dense.scatter_add(-1, positions[:, None, None], weight), state=place)

    @property
    def gathers(self) -> bool:
        """True in evaluation, where rows of queries may be sources x beams."""
        return not self.training

    def attend_expected(self, query: Tensor, memory: Memory, state: Alignment, offset: Offset, weights: bool) -> Attended:
        """The expected alignment and context of all queries, in training."""
        energies = score_in_blocks(partial(compare, self.score), query, memory.keys)
        allowed = self.allowed(energies, memory, offset)
        stops = self.normalise.move(energies, allowed, state)
        expected = self.distribute(query, memory, stops, allowed).to(memory.values.dtype)
        dropped = F.dropout(expected, self.dropout) if self.dropout else expected
        return Attended(
            self.output(self.merge(dropped @ memory.values)), expected if weights else None, state=stops[:, :, -1:]
        )

    def distribute(self, query: Tensor, memory: Memory, stops: Scores, allowed: Allowed | None) -> Scores:
        """The expected weights for these stopping probabilities: the probabilities themselves."""
        return stops

    def select_keys(self, step: MonotonicStep, place: Place) -> tuple[Positions, Float[Tensor, "some spots"]]:
        """The keys read at the stop `place`, and their weights: that key, or none beyond the end."""
        positions = place[:, None].clamp_max(step.keys - 1)[:, : step.keys]
        return positions, (place < step.keys)[:, None].expand_as(positions).to(step.query.dtype)


def score_in_blocks(
    score: Callable[[Tensor, Tensor], Tensor],
    query: Float[Tensor, "batch heads queries query"],
    prepared: Float[Tensor, "batch key_heads keys hidden"],
) -> Float[Tensor, "batch heads queries keys"]:
    """Scores in blocks of queries that fit in memory; all at once where a program is traced."""
    if torch.compiler.is_compiling():
        return score(query, prepared)
    rows = max(1, BLOCK // max(1, prepared.numel()))
    return torch.cat([score(block, prepared) for block in torch.split(query, rows, dim=2)], dim=2)
