"""Gated coverage, Tu's: a GRU at each key tracks how it was attended."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.scope import Offset
from regard.attention.stateful import Stateful
from regard.attention.types import Attended, Memory


class GatedCoverage(Stateful):
    """Coverage attention whose coverage is a vector for each key, updated by a GRU from its weight and the query.

        e_ij = vᵀ tanh(W s_i + U h_j + V C_{i-1,j} + b),    a_i = softmax(e_i),    C_ij = GRU(C_{i-1,j}, [a_ij; h_j; s_i])

    Tu et al. 2016, the neural network based coverage with a gated unit, https://arxiv.org/abs/1601.04811
    The gates are as in Bahdanau, Cho and Bengio 2015, https://arxiv.org/abs/1409.0473:

        z = sigmoid(G_z [a; h; s] + R_z C),    r = sigmoid(G_r [a; h; s] + R_r C)
        C' = (1 - z) C + z tanh(G_c [a; h; s] + R_c (r C))

    C is the state, `notes` numbers for each key, and starts at 0. Unlike the paper, h_j is the value of a key where keys and
    values differ.
    Cost: that of Additive, and O(S notes (d + notes)) for each query, one query after the other.
    """

    def __init__(self, query: int, key: int | None = None, value: int | None = None, *, notes: int = 10, **options: Any):
        super().__init__(query, key, value, score="additive", **options)
        if notes < 1:
            raise ValueError(f"GatedCoverage needs 1 or more notes about each key, got {notes}")
        self.notes = notes
        self.V = nn.Linear(notes, self.score.v.weight.shape[-1])
        nn.init.zeros_(self.V.bias)
        self.share = nn.Linear(1, 3 * notes, bias=False)
        self.source = nn.Linear(self.size, 3 * notes)
        self.asked = nn.Linear(query, 3 * notes, bias=False)
        self.gates = nn.Linear(notes, 2 * notes, bias=False)
        self.again = nn.Linear(notes, notes, bias=False)

    def start(self, memory: Memory) -> Float[Tensor, "batch keys notes"]:
        """The coverage before the first query: zeros."""
        return memory.values.new_zeros(memory.values.shape[0], memory.values.shape[2], self.notes)

    def add_coverage(self, memory: Memory, state: Float[Tensor, "batch keys notes"]) -> Memory:
        """The memory with the coverage in its keys, U k + V C + b."""
        return memory._replace(keys=memory.keys + self.V(state)[:, None])

    def step(
        self,
        query: Float[Tensor, "batch 1 query"],
        memory: Memory,
        state: Float[Tensor, "batch keys notes"],
        *,
        offset: Offset,
        weights: bool,
    ) -> Attended:
        """Attend to the keys with their coverage, and update it by the GRU."""
        attended = Attention.forward(self, query, self.add_coverage(memory, state), offset=offset, weights=True)
        assert attended.weights is not None, "weights=True returns them"
        coverage = self.update(query, memory, state, attended.weights[:, 0, 0])
        return attended._replace(weights=attended.weights if weights else None, state=coverage)

    def update(
        self,
        query: Float[Tensor, "batch 1 query"],
        memory: Memory,
        state: Float[Tensor, "batch keys notes"],
        weights: Float[Tensor, "batch keys"],
    ) -> Float[Tensor, "batch keys notes"]:
        """The coverage after a step with these weights."""
        inputs = self.share(weights[..., None]) + self.source(memory.values[:, 0]) + self.asked(query)
        gates, candidate = inputs.split((2 * self.notes, self.notes), dim=-1)
        z, r = torch.sigmoid(gates + self.gates(state)).chunk(2, dim=-1)
        return (1 - z) * state + z * torch.tanh(candidate + self.again(r * state))
