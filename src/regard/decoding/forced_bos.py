"""Opening: an answer whose first token is not for the decoder to choose, such as the name of its language."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.text.vocabulary import NAMES
from regard.decoding.logprobs import IMPOSSIBLE
from regard.decoding.max_length import first_tensor
from regard.errors import ConfigError
from regard.models.types import Decoder, Step
from regard.tree import Tree


class Opening:
    """A decoder that opens every answer with `first`, which then is certain; everything after it is as it was.

        P(y_1 = first) = 1,    P(y_t | y_1 ... y_t-1) = the decoder's

    So do transformers with forced_bos_token_id: the models of many languages are told by it which one to write.
    """

    def __init__(self, decoder: Decoder, first: int):
        self.decoder, self.first = decoder, first

    def __call__(self, *given: Any, **options: Any) -> Step:
        """Teacher-forced, the target says what it begins with."""
        return self.decoder(*given, **options)

    def remember(self, encoded: Any) -> Tree:
        return self.decoder.remember(encoded)

    def start(self, memory: Tree) -> Any:
        """The decoder's state, and for each row whether it has yet to open."""
        tensor = first_tensor(memory)
        return self.decoder.start(memory), torch.ones(len(tensor), dtype=torch.bool, device=tensor.device)

    def step(self, token: Int[Tensor, " rows"], memory: Tree, state: Any, *, weights: bool = False) -> Step:
        inner, closed = state
        step = self.decoder.step(token, memory, inner, weights=weights)
        vocabulary = step.output.shape[-1]
        if not len(NAMES) <= self.first < vocabulary:
            raise ConfigError(
                f"search.first needs to be a token's number, from {len(NAMES)} to {vocabulary - 1}, got {self.first}"
            )
        certain = torch.full_like(step.output, IMPOSSIBLE)
        certain[:, self.first] = 0.0
        return Step(torch.where(closed[:, None], certain, step.output), (step.state, closed & False), step.attended)
