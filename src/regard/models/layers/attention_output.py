"""Decoder output computed from the weights of its last attention: the exact marginal of hard attention, and copying."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.types import Attended, Encoded, Memory
from regard.models.layers.marginal import ComputeLogits, is_marginal, marginalise
from regard.models.layers.pointer import PointerGenerator, is_pointer

Data = Float[Tensor, "rows time _"]


class LastAttention(NamedTuple):
    """Last cross-attention of a decoder with its inputs and outputs, from which the output is computed."""

    cross: Attention
    memory: Memory
    attended: Attended
    """Output of the attention, with its weights."""
    state: Data
    token: Data
    """Embedding of the previous token."""
    tokens: Any = ()
    """Target token that each key would copy; () for a decoder that does not copy."""


class AttentionOutput(nn.Module):
    """Output computed from attention weights: the marginal over keys, copying from where it points, or both.

    Returns log-probabilities. Those are logits too, since their softmax is the probabilities themselves, so that losses and
    searches need not know.
    """

    def __init__(self, cross: Attention, state: int, token: int, vocabulary: int, counterparts: Sequence[int] | None):
        super().__init__()
        self.exact = is_marginal(cross)
        self.copying = PointerGenerator(cross.size, state, token, vocabulary, counterparts) if is_pointer(cross) else None

    def tokens(self, encoded: Encoded) -> Any:
        """Target tokens that a source offers for copying, for Look.tokens."""
        return () if self.copying is None else self.copying.tokens(encoded)

    def forward(self, look: LastAttention, say: ComputeLogits, *known: Data) -> Data:
        """Log-probabilities of every position; `say(context, *known)` computes the logits that follow from a context."""
        if self.exact:
            output = marginalise(look.cross, look.memory, look.attended, say, *known)
        else:
            output = say(look.attended.context, *known)
        if self.copying is None:
            return output
        return self.copying(output, look.attended, look.state, look.token, look.tokens)


def build_attention_output(
    cross: Attention | None, *, state: int, token: int, vocabulary: int, counterparts: Sequence[int] | None = None
) -> AttentionOutput | None:
    """Build the outcome of an attention, or None where its context is all that the decoder uses."""
    if cross is None or not (is_marginal(cross) or is_pointer(cross)):
        return None
    return AttentionOutput(cross, state, token, vocabulary, counterparts)
