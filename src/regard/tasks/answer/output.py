"""Output of networks that answer questions: logits of the answers, and the sentences that each hop read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

Weights = Mapping[str, Float[Tensor, "batch 1 rows keys"]]
NO_WEIGHTS: Weights = MappingProxyType({})


class StoryAnswer(NamedTuple):
    """Logits of the answers, the share of its reading that each hop gave to each sentence, and weights for a trace."""

    logits: Float[Tensor, "batch answers"]
    hops: Float[Tensor, "batch hops sentences"] | None
    """None where weights were not asked for and are not formed anyway."""
    inner: Weights = NO_WEIGHTS
    """Weights of attentions to something else than sentences: words, or blocks of a memory, by name."""
