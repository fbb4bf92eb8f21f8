"""What the weights of a decoder's last attention become at its output, where its context is not all that it gives."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.types import Attended, Encoded, Memory
from regard.models.layers.marginal import Say, exact, marginalise
from regard.models.layers.pointer import Copying, points

Data = Float[Tensor, "rows time _"]


class Look(NamedTuple):
    """A decoder's last look at the source: who looked and where, what it found, and what it knew."""

    cross: Attention
    memory: Memory
    attended: Attended
    """With its weights."""
    state: Data
    token: Data
    """The token before, as a vector."""
    tokens: Any = ()
    """What each key would give to a decoder that copies; () where it does not."""


class Outcome(nn.Module):
    """Say what follows from a look: by the marginal over its keys, by copying from where it points, or by both.

    What comes out are log-probabilities. Those are logits too, since their softmax is the probabilities themselves, so that
    losses and searches need not know.
    """

    def __init__(self, cross: Attention, state: int, token: int, vocabulary: int, counterparts: Sequence[int] | None):
        super().__init__()
        self.exact = exact(cross)
        self.copying = Copying(cross.size, state, token, vocabulary, counterparts) if points(cross) else None

    def tokens(self, encoded: Encoded) -> Any:
        """What there is to copy in a source, for Look.tokens."""
        return () if self.copying is None else self.copying.tokens(encoded)

    def forward(self, look: Look, say: Say, *known: Data) -> Data:
        """The output of every position, where `say(context, *known)` are the logits that follow from a context."""
        if self.exact:
            output = marginalise(look.cross, look.memory, look.attended, say, *known)
        else:
            output = say(look.attended.context, *known)
        if self.copying is None:
            return output
        return self.copying(output, look.attended, look.state, look.token, look.tokens)


def outcome(
    cross: Attention | None, *, state: int, token: int, vocabulary: int, counterparts: Sequence[int] | None = None
) -> Outcome | None:
    """The outcome of an attention, or None where the context is all that it gives."""
    if cross is None or not (exact(cross) or points(cross)):
        return None
    return Outcome(cross, state, token, vocabulary, counterparts)
