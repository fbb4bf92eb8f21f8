"""Shallow fusion: log-probabilities of a language model for the tokens that may follow a hypothesis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.logprobs import compute_logprobs
from regard.decoding.max_length import find_device
from regard.models.types import Decoder
from regard.tree import Tree, select


class LanguageState(NamedTuple):
    """State of the language model after each hypothesis, and its log-probabilities of the next token."""

    decoder: Any
    logs: Float[Tensor, "rows vocabulary"]


class LanguageModel:
    """Log-probability of each token under a language model, a decoder that reads no source.

        s(c | g) = log p_LM(c | g)

    Gulcehre et al. 2015, https://arxiv.org/abs/1503.03535, call it shallow fusion. `memory` is the decoder's memory of the
    empty source, one row, which serves all hypotheses. BOS, the first token, begins the text.
    """

    rewards = False

    def __init__(self, decoder: Decoder, memory: Tree, weight: float = 0.3):
        self.decoder, self.memory, self.weight = decoder, memory, weight

    def start(self, sentences: Sequence[int]) -> LanguageState:
        """State before BOS, one row for each sentence; nothing is scored yet."""
        rows = torch.zeros(len(sentences), dtype=torch.long, device=find_device(self.memory))
        return LanguageState(self.decoder.start(select(self.memory, rows)), torch.zeros(len(rows), 1, device=rows.device))

    def after(self, state: LanguageState, tokens: Int[Tensor, " rows"]) -> LanguageState:
        """State after one more token of each row."""
        step = self.decoder.step(tokens, self.memory, state.decoder)
        return LanguageState(step.state, compute_logprobs(step.output))

    def score(self, state: LanguageState) -> Float[Tensor, "rows vocabulary"]:
        """Log-probability of each token as the next."""
        return state.logs
