"""Sampling with temperature, top-k and top-p."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.constraints.state import Guard
from regard.decoding.greedy import choose_most_likely
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import IMPOSSIBLE
from regard.decoding.stepwise import decode_stepwise
from regard.decoding.topk import select_highest
from regard.models.types import Decoder
from regard.tree import Tree

MIN_TEMPERATURE = 1e-30
"""Lowest temperature: below it float32 shows no difference."""


def sample(
    decoder: Decoder,
    memory: Tree,
    *,
    length: int | Sequence[int],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
    weights: bool = False,
    unknown: bool = True,
    guard: Guard | None = None,
) -> list[Hypothesis]:
    """Sampling: one hypothesis for each sentence, sampled token by token; temperature 0 is greedy search.

        y_t ~ P(y | X, y_1 ... y_t-1)^(1 / temperature), among the tokens that top-k and top-p keep, renormalised

    Top-k: the k most likely tokens (Fan et al. 2018, section 5.4, https://arxiv.org/abs/1805.04833). Top-p: of these, the
    fewest that together have probability p (Holtzman et al. 2020, section 3.1, https://arxiv.org/abs/1904.09751); never
    fewer than one. The temperature is applied first. The reported log-probabilities are the model's own, untouched by all
    three. The same generator state gives the same targets for the same batch. A `guard` holds the constraints of each
    target.
    """
    draw = Sampler(temperature, top_k, top_p, generator)
    choose = choose_most_likely if temperature == 0 else draw
    return decode_stepwise(decoder, memory, choose, length=length, weights=weights, unknown=unknown, guard=guard)


@dataclass(frozen=True)
class Sampler:
    """Sampler of one token for each row."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature needs to be 0 or more and finite, got {self.temperature}; 0 is greedy search")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k needs to be 1 or more, got {self.top_k}; None keeps every token")
        if not 0 <= self.top_p <= 1:
            raise ValueError(f"top_p needs to be from 0 to 1, got {self.top_p}; 1 keeps every token")

    def __call__(self, logs: Float[Tensor, "rows vocabulary"]) -> Int[Tensor, " rows"]:
        shares = self.shares(logs)
        where = shares.device if self.generator is None else self.generator.device
        tokens = torch.multinomial(shares.to(where), 1, generator=self.generator)
        return tokens[:, 0].to(logs.device)

    def shares(self, logs: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """Sampling probability of each token."""
        heated = (logs - logs.amax(-1, keepdim=True)) / max(self.temperature, MIN_TEMPERATURE)
        if self.top_k is not None:
            heated = _mask_others(heated, select_highest(heated, self.top_k)[1])
        if self.top_p < 1:
            shares, places = select_highest(heated.softmax(-1), heated.shape[-1])
            before = shares.cumsum(-1) - shares  # cumulative probability of the more likely ones
            nucleus = before < self.top_p
            nucleus[:, 0] = True
            heated = heated.masked_fill(~torch.zeros_like(nucleus).scatter(-1, places, nucleus), IMPOSSIBLE)
        return heated.softmax(-1)


def _mask_others(
    logs: Float[Tensor, "rows vocabulary"], places: Int[Tensor, "rows best"]
) -> Float[Tensor, "rows vocabulary"]:
    """Mask all tokens but these."""
    return torch.full_like(logs, IMPOSSIBLE).scatter(-1, places, logs.gather(-1, places))
