"""Relative position bias shared by all layers of an encoder or decoder, as in T5."""

from collections.abc import Sequence

from regard.attention.multihead import MultiHead
from regard.attention.score.t5 import T5


def share_bias(attentions: Sequence[MultiHead], causal: bool) -> None:
    """Give the self-attentions of all layers one shared score.

        score_n(q at i, k at j) = qᵀ k + b_h[bucket(j - i)]        b is the same for every layer n

    Raffel et al. 2020, section 2.1, https://arxiv.org/abs/1910.10683. With `causal`, for a decoder, all buckets are those of
    keys before the query, as in the authors' code.
    """
    for attention in attentions:
        if not isinstance(attention.score, T5):
            raise ValueError(f"a shared bias needs self-attention by t5, got {type(attention.score).__name__}; name t5")
    score = T5(heads=attentions[0].heads, causal=causal)
    for attention in attentions:
        attention.score = score
