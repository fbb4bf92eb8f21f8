"""Greedy search on the GPU: y_t = argmax_y P(y | X, y_1 ... y_t-1)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS, EOS
from regard.decoding.engines.cuda import fused_layer
from regard.decoding.engines.cuda.topk import prepare_top_tokens, select_top_tokens
from regard.decoding.engines.cuda.types import Counter, Project
from regard.decoding.logprobs import IMPOSSIBLE


class Greedy:
    """Greedy state on the device: the last token of each sentence, and the results of the last steps."""

    width = 1

    def __init__(self, sentences: int, turns: int, device: torch.device):
        self.tokens: Int[Tensor, " sentences"] = torch.full((sentences,), BOS, device=device)
        self.parents: Int[Tensor, "sentences 1"] = torch.zeros(sentences, 1, dtype=torch.long, device=device)
        self.scores = torch.zeros(sentences, 1, dtype=torch.float64, device=device)
        self.figures = torch.zeros(turns, 4, sentences, 1, dtype=torch.float64, device=device)

    def begin(self) -> None:
        """Reset to the state before the first token."""
        self.tokens.fill_(BOS)
        self.scores.zero_()

    def take(self, other: "Greedy", rows: Int[Tensor, " sentences"]) -> None:
        """Copy selected sentences of another state."""
        self.tokens.copy_(other.tokens[rows])
        self.scores.copy_(other.scores[rows])

    def choose(self, hidden: Float[Tensor, "rows size"], project: Project, place: Counter, turn: Counter) -> None:
        """Choose the next token of each sentence."""
        values, tokens = select_top_tokens(hidden, project, 1)
        if fused_layer.has_kernels(hidden.device):
            fused_layer.record_step(values, tokens, self.scores, self.figures, self.tokens, turn)
            return
        self.scores += values
        results = torch.stack((self.scores, values, tokens, self.parents))  # of mixed dtypes: they become float64
        self.figures.index_copy_(0, turn, results[None])
        self.tokens.copy_(tokens[:, 0])

    def prepare(self, logits: Float[Tensor, "1 vocabulary"], place: Counter, turn: Counter) -> None:
        """Launch the kernels of `choose`, so that they are compiled (kernels/runtime/compile.py)."""
        values, tokens = prepare_top_tokens(logits, len(self.tokens), 1)
        if fused_layer.has_kernels(logits.device):
            fused_layer.record_step(values, tokens, self.scores, self.figures, self.tokens, turn)

    def fetch(self, turns: int) -> tuple[Float[Tensor, "turns 4 sentences 1"], Float[Tensor, "turns sentences"]]:
        """Fetch the results of some steps to the host, and flags: 1 where a sentence ended, or is stuck."""
        figures = self.figures[:turns].to("cpu", copy=True)
        scores, _, tokens, _ = figures[..., 0].unbind(1)
        return figures, ((tokens == EOS) | (scores == IMPOSSIBLE)).double()
