"""GMM attention, Graves's: the weights are a mixture of Gaussians over the positions of the keys, which only move on."""

import math
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import run_reference
from regard.attention.normalise import widen
from regard.attention.scope import Offset
from regard.attention.stateful import Stateful
from regard.attention.types import Attended, Memory

Means = Float[Tensor, "batch components"]
NARROWEST = 0.01
"""Added to the standard deviation of version 2, so that a density stays finite."""
STEEPEST = 10.0
"""Bound of what versions 0 and 1 exponentiate."""


class Mixture(NamedTuple):
    """Predicted parameters of one query's mixture."""

    factor: Float[Tensor, "*rows components"]
    """w / Z."""
    move: Float[Tensor, "*rows components"]
    """Δ, by which each mean moves on: above 0."""
    width: Float[Tensor, "*rows components"]
    """σ, the standard deviation."""


class MixtureDensity(nn.Module):
    """Density of a mixture of Gaussians at the positions of the keys; the query predicts the mixture.

    score(q, j) = Σ_k w_k / Z_k exp(-(j - μ_k)² / (2 σ_k²)),    (ŵ, Δ̂, σ̂) = V tanh(W q + b) + biases,    μ = means + Δ

    The key's side of the score is the distance j - mean of each key from each mean before it moves.
    """

    positional: ClassVar[bool] = False

    def __init__(self, query: int, components: int, version: int, hidden: int | None, move: float, width: float):
        super().__init__()
        if components < 1:
            raise ValueError(f"Gmm needs at least one component, got components={components}")
        if version not in (0, 1, 2):
            raise ValueError(f"Gmm has the versions 0, 1 and 2 of Battenberg et al., got version={version}")
        if move <= 0 or width <= NARROWEST:
            raise ValueError(
                f"Gmm needs an initial_move above 0 and an initial_width above {NARROWEST}, got {move} and {width}"
            )
        self.components, self.version = components, version
        self.W = nn.Linear(query, hidden or query)
        self.V = nn.Linear(hidden or query, 3 * components, bias=False)
        self.biases = nn.Parameter(torch.zeros(3, components))
        with torch.no_grad():
            self.biases[1] = invert_softplus(move) if version == 2 else math.log(move)
            self.biases[2] = (-math.log(2 * width**2), 2 * math.log(width), invert_softplus(width - NARROWEST))[version]

    def prepare(self, key: Float[Tensor, "batch heads keys key"]) -> Float[Tensor, "batch 1 keys components"]:
        """The positions 0, 1, 2, ... once for each component, whose means begin at 0: in float32 at least."""
        places = torch.arange(key.shape[2], device=key.device, dtype=widen(key[:1, :1, :1]).dtype)
        return places[:, None].expand(key.shape[0], 1, -1, self.components)

    def predict(self, query: Float[Tensor, "batch heads queries query"]) -> Mixture:
        """The mixture of each query, in float32 at least."""
        hats = torch.unflatten(widen(self.V(torch.tanh(self.W(query)))), -1, (3, self.components)) + self.biases
        weight, move, width = hats.unbind(-2)
        if self.version == 2:
            sigma = F.softplus(width) + NARROWEST
            return Mixture(weight.softmax(-1) / (math.sqrt(2 * math.pi) * sigma), F.softplus(move), sigma)
        weight, move, width = (hat.clamp(-STEEPEST, STEEPEST) for hat in (weight, move, width))
        if self.version == 1:
            sigma = (width / 2).exp()
            return Mixture(weight.softmax(-1) / (math.sqrt(2 * math.pi) * sigma), move.exp(), sigma)
        return Mixture(weight.exp(), move.exp(), (-width / 2).exp() / math.sqrt(2))

    def compute_density(
        self, mixture: Mixture, distance: Float[Tensor, "batch heads keys components"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The density of each query's mixture at these distances from its means before they move."""
        factor, move, width = (part[:, :, :, None] for part in mixture)  # batch heads queries 1 components
        return (factor * torch.exp(-(((distance[:, :, None] - move) / width) ** 2) / 2)).sum(-1)

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch heads keys components"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        return self.compute_density(self.predict(query), prepared).to(query.dtype)


class Gmm(Stateful):
    """Purely positional attention: a mixture of Gaussians over the positions of the keys, whose means move forward only.

        a_ij = Σ_k w_ik / Z_ik exp(-(j - μ_ik)² / (2 σ_ik²)),    μ_i = μ_{i-1} + Δ_i,    μ_0 = 0

    Graves 2013, section 5.1, https://arxiv.org/abs/1308.0850, and Battenberg et al. 2020, https://arxiv.org/abs/1910.10288
    w, Δ and σ are functions of V tanh(W q + b), by `version`: 0 is Graves's, with exponentials and Z = 1; in 1 the weights
    w are a softmax and the Gaussians are normalised; in 2, the default, Δ and σ are a softplus, which is the most stable.
    `components` is the number of Gaussians, `hidden` the size of the hidden layer, by default that of the query. At first
    each mean moves on by `initial_move` keys a query, and each Gaussian has the standard deviation `initial_width`. Keys
    count from 0 here, σ of version 2 is larger than the paper's by 0.01, and what the others exponentiate is clamped to
    ±10. No key is compared, so that any length can be read; weights sum to about one while the means are in the source, and
    to exactly one with the normaliser sum_to_one. The state is μ.
    Cost: time and memory O(S components) for each query, one query after the other.
    """

    def __init__(
        self,
        query: int,
        key: int | None = None,
        *,
        components: int = 5,
        version: int = 2,
        hidden: int | None = None,
        initial_move: float = 1.0,
        initial_width: float = 10.0,
        **options: Any,
    ):
        if options.get("impl") == "fused":
            raise ValueError("no kernel covers Gmm, whose weights come from positions; leave impl='auto'")
        density = MixtureDensity(options.get("size") or query, components, version, hidden, initial_move, initial_width)
        super().__init__(query, key, score=density, **{"normalise": "identity"} | options)
        self.key = nn.Identity()  # no key is compared

    def start(self, memory: Memory) -> Means:
        """The means before the first query: 0, the first key."""
        return memory.keys.new_zeros(memory.keys.shape[0], self.score.components)

    def add_coverage(self, memory: Memory, state: Means) -> Memory:
        """The memory with the distance of each key from each mean in place of its position."""
        return memory._replace(keys=memory.keys - state[:, None, None])

    def step(
        self, query: Float[Tensor, "batch 1 query"], memory: Memory, state: Means, *, offset: Offset, weights: bool
    ) -> Attended:
        """Move the means on, and weight each key by the density there."""
        projected = self.split(self.query(query))
        mixture = self.score.predict(projected)
        density = self.score.compute_density(mixture, self.add_coverage(memory, state).keys).to(memory.values.dtype)
        request = self.build_request(projected, memory, offset=offset, weights=weights)
        return self.project_output(run_reference(request, density), state + mixture.move[:, 0, 0])


def invert_softplus(value: float) -> float:
    """The number whose softplus is `value`."""
    return value + math.log(-math.expm1(-value))
