"""Copying (pointer-generator): the decoder generates a token, or copies one that its attention points at."""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from regard.attention.module import Attention
from regard.attention.types import Attended, Encoded
from regard.models.layers.log_mixture import masked_log, to_float32
from regard.tree import repeat_rows

NO_TOKEN = -1
"""Token id where there is nothing to copy."""


def is_pointer(cross: Attention | None) -> bool:
    """Return True if this attention is one that a decoder copies by."""
    return bool(getattr(cross, "points", False))


class PointerGenerator(nn.Module):
    """Pointer-generator: mixes the decoder's distribution with the attention over source tokens.

        g = σ(w [c; h; y] + b)
        p(w) = g P(w) + (1 - g) Σ_{s: x_s = w} a_s

    See, Liu and Manning 2017, eq. 8 and 9, https://arxiv.org/abs/1704.04368, with c the context, h the decoder's state and
    y its input. Unlike the paper, nothing outside the target's vocabulary can be written: the weight of a source token that
    has no counterpart there goes to P, and so does all of it where the attention sees nothing. Returns log p.

    `counterparts` holds the target's token id for each id of the source, or NOTHING; without it both sides share their ids.
    It is saved with the model.
    """

    def __init__(self, context: int, state: int, token: int, vocabulary: int, counterparts: Sequence[int] | None = None):
        super().__init__()
        self.gate = nn.Linear(context + state + token, 1)
        self.vocabulary = vocabulary
        wrong = [token for token in counterparts or () if not NO_TOKEN <= token < vocabulary]
        if wrong:
            raise ValueError(
                f"a counterpart needs to be a target token from 0 to {vocabulary - 1}, or {NO_TOKEN} for none, "
                f"got {wrong[0]}"
            )
        self.register_buffer("counterparts", None if counterparts is None else torch.tensor(counterparts, dtype=torch.long))

    def tokens(self, encoded: Encoded) -> Int[Tensor, "batch time"]:
        """Target token id that each source position would copy, or NOTHING."""
        if encoded.tokens is None:
            raise ValueError(
                "an attention that points copies from the source, which needs to come with its tokens "
                "(Encoded.tokens), and has none; read a source without tokens by bahdanau"
            )
        if self.counterparts is None:
            copyable = encoded.tokens.masked_fill(encoded.tokens >= self.vocabulary, NO_TOKEN)
        else:
            copyable = cast(Tensor, self.counterparts)[encoded.tokens]
        return copyable if encoded.keep is None else copyable.masked_fill(~encoded.keep, NO_TOKEN)

    def forward(
        self,
        output: Float[Tensor, "rows time vocabulary"],
        attended: Attended,
        state: Float[Tensor, "rows time state"],
        token: Float[Tensor, "rows time token"],
        tokens: Int[Tensor, "sources keys"],
    ) -> Float[Tensor, "rows time vocabulary"]:
        """Log-probabilities log p(w) from the logits of P and the token that each key would copy; heads are averaged."""
        assert attended.weights is not None, "copying asks for them"
        weights = attended.weights.to(to_float32(output).dtype).mean(1)  # rows time keys
        tokens = repeat_rows(tokens, weights.shape[0] // tokens.shape[0])[:, None].expand_as(weights)
        nothing = tokens == NO_TOKEN
        copied = to_float32(torch.zeros_like(output)).scatter_add(
            -1, tokens.masked_fill(nothing, 0), weights.masked_fill(nothing, 0.0)
        )
        blind = weights.sum(-1) <= 0
        copy_mass = weights.masked_fill(~nothing, 0.0).sum(-1).masked_fill(blind, 1.0)[..., None]
        gate = to_float32(self.gate(torch.cat((attended.context, state, token), dim=-1)))
        own, other = logsigmoid(gate), logsigmoid(-gate)
        own = torch.logaddexp(own, other + masked_log(copy_mass))
        return torch.logaddexp(own + to_float32(output).log_softmax(-1), other + masked_log(copied))
