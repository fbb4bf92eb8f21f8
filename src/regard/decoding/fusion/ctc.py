"""CTC prefix scores: probabilities that a transcript begins with a prefix, for joint decoding with an attention decoder."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS, EOS, PAD

NEVER = -1e10
"""Log-probability of what cannot be: finite, so that differences of two are no NaN."""
LEAST = -1e3
"""Least log-probability of a token at a frame."""


class PrefixState(NamedTuple):
    """Forward variables of the prefix of each row, in logarithms; place 0 is before the first frame."""

    sentence: Int[Tensor, " rows"]
    token: Float[Tensor, "rows places"]
    """Alignments of the prefix up to a frame that end with its last token."""
    blank: Float[Tensor, "rows places"]
    """Alignments that end with blank."""
    prefix: Float[Tensor, " rows"]
    """Probability that a transcript begins with the prefix."""
    last: Int[Tensor, " rows"]


class CtcPrefix:
    """Scores of CTC for the tokens that may follow a prefix g.

        s(c | g) = log ψ(g c) - log ψ(g),     ψ(g c) = Σ_t φ_t(g, c) p(c | t),     s(EOS | g) = log γ_T(g) - log ψ(g)
        φ_t(g, c) = γ_{t-1}(g), without the alignments that end in g's last token where that is c too

    where γ_t(g) is the probability of all alignments of the first t frames that give g. Watanabe et al. 2017, algorithm 2,
    https://doi.org/10.1109/JSTSP.2017.2763455. Unlike there, the scores of all tokens come from one matrix product, and the
    recursions over time from cumulative sums. Blank is PAD.
    """

    rewards = False

    def __init__(
        self,
        logs: Float[Tensor, "sentences time vocabulary"],
        keep: Bool[Tensor, "sentences time"] | None = None,
        weight: float = 0.3,
    ):
        self.weight = weight
        logs = logs.double().clamp_min(LEAST)
        if keep is not None:  # at padding blank is certain: nothing more is said
            certain = torch.full_like(logs[:1, :1], LEAST)
            certain[..., PAD] = 0.0
            logs = torch.where(keep[..., None], logs, certain)
        self.logs, self.probabilities = logs, logs.float().exp()

    def start(self, sentences: Sequence[int]) -> PrefixState:
        """State of the empty prefix for each of these sentences."""
        rows = torch.tensor(sentences, dtype=torch.long, device=self.logs.device)
        blank = torch.nn.functional.pad(self.logs[rows, :, PAD].cumsum(1), (1, 0))
        return PrefixState(rows, torch.full_like(blank, NEVER), blank, torch.zeros_like(blank[:, 0]), rows * 0 + BOS)

    def after(self, state: PrefixState, tokens: Int[Tensor, " rows"]) -> PrefixState:
        """State of the prefixes with one more token."""
        if bool((tokens == BOS).all()):
            return state
        logs = self.logs[state.sentence, :, tokens]  # rows time
        blanks = self.logs[state.sentence, :, PAD]
        before = torch.where((tokens == state.last)[:, None], state.blank, torch.logaddexp(state.blank, state.token))[:, :-1]
        token = _accumulate(before, logs)
        blank = _accumulate(token[:, :-1], blanks)
        prefix = (before + logs).logsumexp(1)
        return PrefixState(state.sentence, token, blank, prefix, tokens)

    def score(self, state: PrefixState) -> Float[Tensor, "rows vocabulary"]:
        """Score of each token as the next, and of EOS as the end."""
        ends = torch.logaddexp(state.blank, state.token)
        scores = self._extend(state.sentence, ends[:, :-1])
        rows = torch.arange(len(scores), device=scores.device)
        repeated = state.blank[:, :-1] + self.logs[state.sentence, :, state.last]
        scores[rows, state.last] = repeated.logsumexp(1)
        scores[:, EOS] = ends[:, -1]
        return (scores - state.prefix[:, None]).clamp(NEVER, 0.0).float()

    def _extend(
        self, sentence: Int[Tensor, " rows"], before: Float[Tensor, "rows time"]
    ) -> Float[Tensor, "rows vocabulary"]:
        """Logarithm of Σ_t exp(before_t) p(c | t), for the rows of each sentence as one product of matrices."""
        sentences: Tensor = torch.unique_consecutive(sentence)
        largest = before.max(1, keepdim=True).values
        weights = (before - largest).exp().float().view(len(sentences), -1, before.shape[1])
        products = torch.bmm(weights, self.probabilities[sentences]).flatten(0, 1)
        return products.double().log().clamp_min(NEVER) + largest


def _accumulate(before: Float[Tensor, "rows time"], logs: Float[Tensor, "rows time"]) -> Float[Tensor, "rows places"]:
    """Solution of a_t = p_t (a_{t-1} + b_{t-1}) with a_0 = 0, in logarithms: a cumulative sum, scaled by ∏ p."""
    total = logs.cumsum(1)
    earlier = total - logs
    return torch.nn.functional.pad(total + (before - earlier).logcumsumexp(1), (1, 0), value=NEVER)
