"""Forced BOS: an answer whose first token is given, such as a language code."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.special_tokens import NAMES
from regard.decoding.logprobs import IMPOSSIBLE
from regard.decoding.max_length import find_tensor
from regard.errors import ConfigError
from regard.models.types import Decoder, Step
from regard.tree import Tree


class ForcedBOS:
    """Decoder wrapper that forces the first token to be `first`, with probability 1.

        P(y_1 = first) = 1,    P(y_t | y_1 ... y_t-1) = the decoder's

    Equals forced_bos_token_id of transformers, which selects the target language of multilingual models.
    """

    def __init__(self, decoder: Decoder, first: int):
        self.decoder, self.first = decoder, first

    def __call__(self, *arguments: Any, **options: Any) -> Step:
        """Forward with teacher forcing, unchanged: the target has its own first token."""
        return self.decoder(*arguments, **options)

    def remember(self, encoded: Any) -> Tree:
        return self.decoder.remember(encoded)

    def start(self, memory: Tree) -> Any:
        """Initial state of the decoder, and a flag for each row that its first token is to be forced."""
        tensor = find_tensor(memory)
        return self.decoder.start(memory), torch.ones(len(tensor), dtype=torch.bool, device=tensor.device)

    def step(self, token: Int[Tensor, " rows"], memory: Tree, state: Any, *, weights: bool = False) -> Step:
        inner, closed = state
        step = self.decoder.step(token, memory, inner, weights=weights)
        vocabulary = step.output.shape[-1]
        if not len(NAMES) <= self.first < vocabulary:
            raise ConfigError(
                f"search.forced_bos needs to be a token's number, from {len(NAMES)} to {vocabulary - 1}, got {self.first}"
            )
        certain = torch.full_like(step.output, IMPOSSIBLE)
        certain[:, self.first] = 0.0
        return Step(torch.where(closed[:, None], certain, step.output), (step.state, closed & False), step.attended)
