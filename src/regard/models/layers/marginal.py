"""Exact marginal of hard attention, at the output of a decoder.

Hard attention looks at one key k, with probability a_k. The marginal is known without sampling:

    p(y) = Σ_k a_k p(y | context = v_k)

Deng et al. 2018, https://arxiv.org/abs/1807.03756; Wu, Shapiro and Cotterell 2018, https://arxiv.org/abs/1808.10024
Soft attention has p(y | context = Σ_k a_k v_k) instead. All layers after a decoder's last attention work position by
position, so that the keys fold into the time axis: T positions that look at S keys are T S positions with a context each.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.normalise.marginal import Marginal
from regard.attention.score import adds_to_context
from regard.attention.types import Attended, Memory
from regard.models.layers.log_mixture import mix_distributions
from regard.tree import repeat_rows

Data = Float[Tensor, "rows time _"]
ComputeLogits = Callable[..., Data]
"""Function from a context, and from what else a decoder knows, to logits, position by position."""


def is_marginal(cross: Attention | None) -> bool:
    """Return True if the output is the marginal over the keys of this attention."""
    if cross is None or not isinstance(cross.normalise, Marginal):
        return False
    if (heads := getattr(cross, "heads", 1)) > 1:
        raise ValueError(
            f"marginal needs an attention of one head, got {heads}: together they look at as many combinations of keys as "
            f"keys to the power of {heads}; choose 1 head, or a mechanism without heads such as bahdanau+marginal"
        )
    if adds_to_context(cross.score):
        raise ValueError(
            f"marginal reads one value at a time as it is, and {type(cross.score).__name__} adds to what is read; choose "
            "another score, such as relative"
        )
    return True


def marginalise(cross: Attention, memory: Memory, attended: Attended, say: ComputeLogits, *known: Data) -> Data:
    """Log-probability log p(y) of every position, from `say(context, *known)` for each key as the context.

    `known` is the decoder's input beside the context. A query that sees nothing has nothing to mix: there its given context
    decides. Weights that do not sum to one are normalised.
    """
    assert attended.weights is not None, "the marginal asks for them"
    weights = attended.weights[:, 0]
    time, keys = weights.shape[1:]
    logits = say(
        list_contexts(cross, memory, attended),
        *(tensor[:, :, None].expand(-1, -1, keys + 1, -1).flatten(1, 2) for tensor in known),
    )
    total = weights.sum(-1, keepdim=True)
    blind = total <= 0
    shares = torch.cat((weights / total.masked_fill(blind, 1.0), blind.to(weights.dtype)), dim=-1)
    return mix_distributions(torch.unflatten(logits, 1, (time, keys + 1)), shares)


def list_contexts(cross: Attention, memory: Memory, attended: Attended) -> Data:
    """Context of each position from each key alone, and after them its actual context."""
    alone = cross.output(cross.merge(memory.values))  # sources keys size
    rows, time, _ = attended.context.shape
    alone = repeat_rows(alone, rows // alone.shape[0])[:, None].expand(-1, time, -1, -1)
    return torch.cat((alone, attended.context[:, :, None]), dim=2).flatten(1, 2)
