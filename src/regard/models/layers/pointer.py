"""Copying (pointer-generator): the decoder generates a token, or copies one that its attention points at."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from regard.attention.module import Attention
from regard.attention.types import Attended, Encoded
from regard.data.special_tokens import NO_TOKEN
from regard.models.layers.log_mixture import masked_log, to_float32
from regard.tree import repeat_rows


class CopyParts(NamedTuple):
    """Parts of a pointer-generator's distribution beside P: the logit of its gate, its attention, and each key's token."""

    gate: Float[Tensor, "rows time 1"]
    weights: Float[Tensor, "rows time keys"]
    """Attention weights, the mean of the heads."""
    tokens: Int[Tensor, "rows keys"]
    """Token that each key would copy, or NO_TOKEN."""

    def log_shares(self) -> tuple[Float[Tensor, "rows time 1"], Float[Tensor, "rows time 1"]]:
        """Logarithm of the share of P, and of the attention: weight that has nothing to copy goes to P."""
        nothing = (self.tokens == NO_TOKEN)[:, None]
        blind = self.weights.sum(-1) <= 0
        lost = self.weights.masked_fill(~nothing, 0.0).sum(-1).masked_fill(blind, 1.0)[..., None]
        own, other = logsigmoid(self.gate), logsigmoid(-self.gate)
        return torch.logaddexp(own, other + masked_log(lost)), other

    def copied_weight(self, target: Int[Tensor, "rows time"]) -> Float[Tensor, "rows time"]:
        """Attention to the keys that hold each position's token: a gather, so that no distribution is formed."""
        return self.weights.masked_fill(self.tokens[:, None] != target[..., None], 0.0).sum(-1)


def is_pointer(cross: Attention | None) -> bool:
    """Return True if this attention is one that a decoder copies by."""
    return bool(getattr(cross, "points", False))


class PointerGenerator(nn.Module):
    """Pointer-generator: mixes the decoder's distribution with the attention over source tokens.

        g = σ(w [c; h; y] + b)
        p(w) = g P(w) + (1 - g) Σ_{s: x_s = w} a_s

    See, Liu and Manning 2017, eq. 8 and 9, https://arxiv.org/abs/1704.04368, with c the context, h the decoder's state and
    y its input. The weight of a source token that has nothing to copy goes to P, and so does all of it where the attention
    sees nothing. Returns log p.

    With `extends`, words outside the target's vocabulary are written too: p has V + S columns for a source of S tokens, and
    V + s stands for the word at place s, the first of its kind there (the extended vocabulary of section 2.2). The source
    then comes with `Encoded.copies`, the target's id of each place. Without `extends`, or where a source has none,
    `counterparts` holds the target's token id for each id of the source, or NO_TOKEN; without it both sides share their ids.
    It is saved with the model. The next input after a word outside the vocabulary is UNK, as in the paper.
    Cost: O(T (S + V)) for a distribution; a training gathers the target's tokens alone.
    """

    def __init__(
        self,
        context: int,
        state: int,
        token: int,
        vocabulary: int,
        counterparts: Sequence[int] | None = None,
        extends: bool = False,
    ):
        super().__init__()
        self.gate = nn.Linear(context + state + token, 1)
        self.vocabulary, self.extends = vocabulary, extends
        wrong = [token for token in counterparts or () if not NO_TOKEN <= token < vocabulary]
        if wrong:
            raise ValueError(
                f"a counterpart needs to be a target token from 0 to {vocabulary - 1}, or {NO_TOKEN} for none, "
                f"got {wrong[0]}"
            )
        self.register_buffer("counterparts", None if counterparts is None else torch.tensor(counterparts, dtype=torch.long))

    def tokens(self, encoded: Encoded) -> Int[Tensor, "batch time"]:
        """Target token id that each source position would copy, or NO_TOKEN."""
        if self.extends and encoded.copies is not None:
            return encoded.copies if encoded.keep is None else encoded.copies.masked_fill(~encoded.keep, NO_TOKEN)
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

    def parts(
        self,
        attended: Attended,
        state: Float[Tensor, "rows time state"],
        token: Float[Tensor, "rows time token"],
        tokens: Int[Tensor, "sources keys"],
    ) -> CopyParts:
        """Gate and attention of every position; heads are averaged. In half precision a gate near one would be one."""
        assert attended.weights is not None, "copying asks for them"
        gate = to_float32(self.gate(torch.cat((attended.context, state, token), dim=-1)))
        weights = attended.weights.to(gate.dtype).mean(1)
        return CopyParts(gate, weights, repeat_rows(tokens, weights.shape[0] // tokens.shape[0]))

    def forward(
        self,
        output: Float[Tensor, "rows time vocabulary"],
        attended: Attended,
        state: Float[Tensor, "rows time state"],
        token: Float[Tensor, "rows time token"],
        tokens: Int[Tensor, "sources keys"],
    ) -> Float[Tensor, "rows time columns"]:
        """Log-probabilities log p(w) from the logits of P and the token that each key would copy."""
        return self.mix(output, self.parts(attended, state, token, tokens))

    def mix(self, output: Float[Tensor, "rows time vocabulary"], parts: CopyParts) -> Float[Tensor, "rows time columns"]:
        """Log-probabilities of the mixture: those of the vocabulary and, with `extends`, one for each key."""
        output = to_float32(output)
        slots = parts.weights.shape[-1] if self.extends else 0
        nothing = (parts.tokens == NO_TOKEN)[:, None].expand_as(parts.weights)
        places = parts.tokens[:, None].expand_as(parts.weights).masked_fill(nothing, 0)
        copied = output.new_zeros(*output.shape[:2], output.shape[2] + slots)
        copied = copied.scatter_add(-1, places, parts.weights.masked_fill(nothing, 0.0).to(copied.dtype))
        own, other = parts.log_shares()
        listed = torch.logaddexp(own + output.log_softmax(-1), other + masked_log(copied[..., : output.shape[2]]))
        if not slots:
            return listed
        return torch.cat((listed, other + masked_log(copied[..., output.shape[2] :])), dim=-1)
