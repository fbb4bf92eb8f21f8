"""Decoder output computed from the weights of its last attention: the exact marginal of hard attention, and copying."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.types import Attended, Encoded, Memory
from regard.models.layers.marginal import ComputeLogits, is_marginal, marginalise
from regard.models.layers.pointer import CopyParts, PointerGenerator, is_pointer

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


class OutputParts(NamedTuple):
    """Output of a decoder and, where it copies, the parts of its mixture beside the projection."""

    output: Data
    copying: CopyParts | None = None


class AttentionOutput(nn.Module):
    """Output computed from attention weights: the marginal over keys, copying from where it points, or both.

    Returns log-probabilities. Those are logits too, since their softmax is the probabilities themselves, so that losses and
    searches need not know. Without `project` it returns what the decoder would project, with the parts of the mixture.
    """

    def __init__(
        self,
        cross: Attention,
        state: int,
        token: int,
        vocabulary: int,
        counterparts: Sequence[int] | None,
        copy: bool = False,
    ):
        super().__init__()
        self.exact = is_marginal(cross)
        points = copy or is_pointer(cross)
        sizes = cross.size, state, token, vocabulary
        self.copying = PointerGenerator(*sizes, counterparts, extends=copy) if points else None

    @property
    def fusable(self) -> bool:
        """True if a loss can be computed from what is projected: the mixture is one of P and the attention alone."""
        return not self.exact

    @property
    def extends(self) -> bool:
        """True if words outside the vocabulary are copied, whose ids follow those of the vocabulary."""
        return self.copying is not None and self.copying.extends

    def tokens(self, encoded: Encoded) -> Any:
        """Target tokens that a source offers for copying, for LastAttention.tokens."""
        return () if self.copying is None else self.copying.tokens(encoded)

    def forward(self, look: LastAttention, say: ComputeLogits, *known: Data, project: bool = True) -> OutputParts:
        """Log-probabilities of every position; `say(context, *known)` computes the logits that follow from a context."""
        if self.exact:
            output = marginalise(look.cross, look.memory, look.attended, say, *known)
        else:
            output = say(look.attended.context, *known)
        if self.copying is None:
            return OutputParts(output)
        parts = self.copying.parts(look.attended, look.state, look.token, look.tokens)
        return OutputParts(self.copying.mix(output, parts) if project else output, parts)


def build_attention_output(
    cross: Attention | None,
    *,
    state: int,
    token: int,
    vocabulary: int,
    counterparts: Sequence[int] | None = None,
    copy: bool = False,
) -> AttentionOutput | None:
    """Build the outcome of an attention, or None where its context is all that the decoder uses."""
    if copy:
        check_copying(cross)
    if cross is None or not (copy or is_marginal(cross) or is_pointer(cross)):
        return None
    return AttentionOutput(cross, state, token, vocabulary, counterparts, copy)


def check_copying(cross: Attention | None) -> None:
    """Raise where there is no attention whose weights are a distribution over the source."""
    if cross is None:
        raise ValueError("model.copy=true copies from where an attention points, and this model has none; name one")
    if not getattr(cross.normalise, "sums_to_one", False) or getattr(cross.normalise, "rewarded", False):
        raise ValueError(
            f"model.copy=true needs weights that sum to one and pass a gradient, as those of softmax, sparsemax and entmax, "
            f"got {type(cross.normalise).__name__}; choose another attention"
        )
